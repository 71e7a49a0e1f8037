//! The ring of stripes over member devices: create, mount, append, acknowledge, read, scrub.
//!
//! [`create`] writes the superblocks, [`mount`] recovers the ring and opens it for writing,
//! [`Writer`] appends stripes and acknowledges them in order, [`Reader`] shows what is acknowledged
//! and verifies every byte, [`verify`] reads everything. The bytes are `format`'s, the I/O is
//! `device`'s; time and randomness come in as arguments, so the simulator runs this code.
//!
//! Invariants: there is one writer at a time, by a claim on every member; a sequence is never used
//! twice; a stripe is acknowledged only after a flush on every member that began when its write had
//! completed; a member that missed one has no say any more until it is made whole; nothing
//! acknowledged is ever written over before the ring comes round; a mount that writes nothing
//! changes no byte but the claims.

mod ahead;
mod claim;
mod create;
mod epoch;
mod error;
mod expiry;
mod explained;
mod heads;
mod index_stripes;
mod layout;
mod locate;
mod look;
mod mark;
mod member_writer;
mod member_writers;
mod membership;
mod mount;
mod protect;
mod quorum;
mod reader;
mod recovery;
mod repair;
mod resilver;
mod restore;
mod rows;
mod said;
mod salvage;
mod scrub;
mod seal;
mod sealing;
mod search;
mod slot_view;
mod steps;
mod superblocks;
mod unlock;
mod verify;
mod writer;

pub use claim::Opener;
pub use create::{CreateOptions, Identity, columns_for, create, create_for, geometry_for};
pub use error::{Error, Expelled, MemberFailure};
pub use expiry::{Erased, erase};
pub use explained::ClockDoubt;
pub use format::usable::{Bound, Usable};
pub use index_stripes::IndexFile;
pub use layout::Layout;
pub use locate::{
    MemberAt, find_members, lacks_superblock, open_found, open_members, open_reader,
    open_superblocks, place_of, place_of_spare, why_absent,
};
pub use look::Look;
pub use membership::{Membership, Redundancy, Seat};
pub use mount::{Candidate, mount, mount_members, mount_without};
pub use protect::{ColumnSums, protect};
pub use reader::{GivenUp, Reader, Slot, Span, StripeInSlot};
pub use recovery::Recovery;
pub use resilver::{Batch, LostRows, Resilver, Resilvered, resilver};
pub use restore::{Recognized, recognize, restore_superblocks};
pub use rows::{PieceRows, RowsWanted};
pub use said::{Acknowledged, Said};
pub use salvage::{Salvaged, salvage};
pub use scrub::{
    BadCopy, Finding, Outcome, Owner, Patrol, ScrubOptions, ScrubReport, Wanted, patrol, scrub,
    verify,
};
pub use sealing::RandomKey;
pub use search::Newest;
pub use verify::{Damage, LostBody, VerifyReport};
pub use writer::{
    Appended, Filled, FilledColumn, Forgotten, Plan, Repair, Retention, Returning, Writer,
    WriterCounters,
};
