//! What a recorder says of itself, read again, and the stretches in which more arrived than its
//! disks wrote. Nothing here asks a recorder or the machine; `diagnose` has the words for it.

mod bursts;
mod state;

pub use bursts::{Burst, Pool, Whole, bursts, pool, worst};
pub use state::{Headroom, Interface, Loss, Member, SlowWrite, State, parse_recorder};
