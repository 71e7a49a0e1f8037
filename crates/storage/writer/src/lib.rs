//! The one writer of a volume: claim, mount, append, acknowledge, scrub, resilver, erase.
//!
//! [`mount`] recovers the ring and opens it for writing, [`Writer`] appends stripes and
//! acknowledges them in order, [`scrub`] repairs what is damaged, [`resilver`] what a member has
//! missed, [`verify`] reads everything. What lies on the members is `volume`'s, the bytes are
//! `format`'s, the I/O is `device`'s; time and randomness come in as arguments, so the simulator
//! runs this code. Failures are `volume`'s, too: who judges them has one list, whether a reader or
//! a writer failed.
//!
//! Invariants: there is one writer at a time, by a claim on every member; a sequence is never used
//! twice; a stripe is acknowledged only after a flush on every member that began when its write had
//! completed; a member that missed one has no say any more until it is made whole; nothing
//! acknowledged is ever written over before the ring comes round; a mount that writes nothing
//! changes no byte but the claims.

mod claim;
mod epoch;
mod expelled;
mod expiry;
mod explained;
mod member_writer;
mod member_writers;
mod mount;
mod protect;
mod recovery;
mod resilver;
mod scrub;
mod sealing;
mod steps;
mod verify;
mod writer;

pub use claim::Opener;
pub use expelled::Expelled;
pub use expiry::{Erased, erase};
pub use explained::ClockDoubt;
pub use mount::{Candidate, mount, mount_members, mount_without};
pub use protect::{ColumnSums, protect};
pub use recovery::Recovery;
pub use resilver::{Batch, LostRows, Resilver, Resilvered, resilver};
pub use scrub::{
    BadCopy, Finding, Outcome, Owner, Patrol, ScrubOptions, ScrubReport, Wanted, patrol, scrub,
    verify,
};
pub use sealing::RandomKey;
pub use verify::{Damage, LostBody, ReadBack, VerifyReport};
pub use writer::{
    Appended, Filled, FilledColumn, Forgotten, Plan, Repair, Returning, Writer, WriterCounters,
};
