//! Who talks, checked against sums made packet by packet.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

mod asked;
mod frames;
mod sums;
mod untrusted;
