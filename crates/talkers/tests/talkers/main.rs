//! Who talks, checked against sums made packet by packet.

mod asked;
mod frames;
mod sums;
