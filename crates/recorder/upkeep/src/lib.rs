//! Create, inspect, verify, scrub: what is done to a volume besides recording and reading.
//!
//! [`anchor`] says what a volume holds, for a statement that is kept elsewhere, and
//! [`check_anchors`] whether it still does. [`create`] refuses every target that is in use or holds
//! anything the user did not agree to destroy. [`scrub`] writes only repairs, to a volume without a
//! running recorder. [`inspect`] and [`verify`] open the volume for reading, take no lock and may
//! run beside a recorder. Nothing here prints: reports are returned, progress goes to a closure
//! that may break off.

mod anchor;
mod create;
mod erase;
mod error;
mod fate;
mod forget;
mod inspect;
mod keys;
mod map;
mod nameless;
mod scrub;
mod segments;
mod shape;
mod status;
mod turnover;
mod verify;

pub use anchor::{
    AnchorFindings, AnchorOptions, AnchorToCheck, AnchorVerdict, Anchored, StripeRange, anchor,
    check_anchors,
};
pub use create::{CreateOptions, Created, CreatedMember, create};
pub use erase::{Erasing, erase};
pub use error::Error;
pub use fate::{BadCopy, Fate};
pub use forget::{IndexFiles, forget, segments_of, settle};
pub use inspect::{
    IndexSummary, InspectedMember, Inspection, LEFT_OUT_SEGMENTS_MAX, MemberState, Recording,
    inspect,
};
pub use keys::{Keys, Rekeyed, Rekeying, keys, rekey};
pub use map::{Cell, Content, Grid, RingMap, map};
pub use scrub::{Scrubbed, scrub};
pub use shape::RingLayout;
pub use status::{MemberStatus, SpareStatus, Status, status};
pub use turnover::{Grown, Joined, NewMember, Target, add_spare, grow, replace, resilver};
pub use verify::{BadStripe, IndexDamage, Verification, verify};
pub use volume::GivenUp;
pub use volume::Redundancy;
pub use writer::{Erased, LostRows, ReadBack, Resilvered};

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use volume::Reader;

/// Hears (bytes done, bytes in all); a break stops the job in order.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Opens the volume that `path` is a member of, for reading only; `members` are further places to
/// look for the others.
fn open(path: &Path, members: &[PathBuf]) -> Result<Reader, Error> {
    volume::open_reader(path, members).map_err(|source| Error::of_volume(path, source))
}
