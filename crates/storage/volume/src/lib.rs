//! A volume as it lies on its members: made, found, judged, read.
//!
//! [`create`] writes the superblocks, [`find_members`] finds the members of a volume by one of
//! them, [`Reader`] shows what is acknowledged and verifies every byte, [`salvage`] does without
//! superblocks. Nothing here claims a volume, appends to it or repairs it: that is the part of
//! `writer`, which takes from the public modules what it has to know of heads, slots and
//! superblocks, so that what is written and what is read has one meaning. The bytes are `format`'s,
//! the I/O is `device`'s; time and randomness come in as arguments, so the simulator runs this
//! code.
//!
//! Invariants: a reader takes no lock and changes no byte; it shows nothing above the watermark
//! that it found, and nothing that the ring has passed; what no member gives is named, never
//! guessed.

mod ahead;
mod create;
mod error;
mod expiry;
pub mod heads;
mod index_stripes;
mod layout;
mod locate;
mod look;
pub mod mark;
mod membership;
mod new_place;
pub mod quorum;
mod reader;
pub mod repair;
mod restore;
mod rows;
mod said;
mod salvage;
pub mod seal;
pub mod search;
pub mod slot_view;
pub mod superblocks;
mod unlock;

pub use create::{CreateOptions, Identity, columns_for, create, create_for, geometry_for};
pub use error::{Error, MemberFailure};
pub use expiry::Retention;
pub use format::usable::{Bound, Usable};
pub use index_stripes::IndexFile;
pub use layout::Layout;
pub use locate::{
    MemberAt, find_members, lacks_superblock, open_found, open_members, open_reader,
    open_superblocks, path_text, place_of, place_of_spare, why_absent,
};
pub use look::Look;
pub use membership::{Membership, Redundancy, Seat, Settled, check_own_seat};
pub use new_place::NewPlace;
pub use reader::{GivenUp, Reader, Slot, Span, StripeInSlot};
pub use restore::{Recognized, recognize, restore_superblocks};
pub use rows::{PieceRows, RowsWanted};
pub use said::{Acknowledged, Said};
pub use salvage::{Salvaged, salvage};
pub use search::Newest;
