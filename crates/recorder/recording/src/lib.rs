//! What a recorder says of itself: while it records ([`Progress`]), of its packets ([`Account`],
//! [`Loss`]) and of its members ([`MemberChange`]). `record` makes it, and it is declared here so
//! that diagnoses and live views read it again as what it was ([`State`]). [`bursts`] are the
//! stretches in which more arrived than its disks wrote.
//!
//! Nothing here asks a recorder or the machine; `diagnose` has the words for it.

mod account;
mod bursts;
mod change;
mod handover;
mod progress;
mod state;

pub use account::{Account, Loss, QueueAccount, both};
pub use bursts::{Burst, Pool, Whole, bursts, pool, worst};
pub use change::{Change, Comeback, MemberChange};
pub use handover::HandOver;
pub use progress::Progress;
pub use state::{State, parse_recorder};
