//! What can go wrong with a volume.

use core::fmt;
use std::path::PathBuf;

use format::claim::{CLAIM_OFFSET, Claim};
use format::head::{StripeId, VolumeId};
use format::key_log::KeyLogError;
use format::superblock::{MemberEntry, Superblock, SuperblockError};
use thiserror::Error;
use units::{ByteSize, MemberId, SlotNumber};

/// A member that failed, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberFailure {
    /// Number of the member.
    pub member: MemberId,
    /// Where it was when the superblocks were written; empty where that is not known.
    pub path: String,
    /// Reason in words.
    pub reason: String,
}

impl MemberFailure {
    /// Of a member as `volume` knows it.
    pub fn new(volume: &Superblock, member: MemberId, error: &Error) -> Self {
        let entry = volume.members.get(member.place());
        let path = entry.map(|entry| entry.path.clone()).unwrap_or_default();
        Self { member, path, reason: error.to_string() }
    }
}

impl fmt::Display for MemberFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, path, reason } = self;
        match path.as_str() {
            "" => write!(f, "member {member}: {reason}"),
            path => write!(f, "member {member} ({path}): {reason}"),
        }
    }
}

/// Why an operation on a volume failed.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its field is")]
pub enum Error {
    /// A member could not be read or written.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// No superblock copy is valid: not a member of a volume, or all four are damaged.
    #[error("no superblock found ({0})")]
    NoSuperblock(SuperblockError),
    /// The device is smaller than the superblock says.
    #[error(
        "it was cut to {actual} bytes and the ring reaches to {expected}; bring back the whole of \
         it, or replace the member"
    )]
    Shrunk {
        /// Bytes there are.
        actual: u64,
        /// Bytes the ring reaches to.
        expected: u64,
    },
    /// Too small for a ring.
    #[error(
        "{} are too few; a volume with pieces of {} needs {}",
        ByteSize(*size_bytes),
        ByteSize(u64::from(*piece_bytes)),
        ByteSize(needed_bytes.next_multiple_of(1 << 20))
    )]
    TooSmall {
        /// Bytes offered.
        size_bytes: u64,
        /// Chosen piece size.
        piece_bytes: u32,
        /// Smallest size that works.
        needed_bytes: u64,
    },
    /// No number of zones.
    #[error("a ring has 1 zone or an even number of them, not {0}")]
    Zones(u16),
    /// An extent that is not made of pieces.
    #[error("an extent of {extent_bytes} bytes is no multiple of the piece of {piece_bytes}")]
    Extent {
        /// Chosen size of an extent.
        extent_bytes: u64,
        /// Size of a piece.
        piece_bytes: u32,
    },
    /// One zone is not cut into extents.
    #[error("one zone has no extents: choose two zones or more, or no size of extents")]
    ExtentOfOneZone,
    /// Not one extent for every zone.
    #[error(
        "a ring of {ring_bytes} bytes a member is too small for {zones} zones with such extents: \
         one of each takes {cycle_bytes} bytes; choose smaller extents or fewer zones"
    )]
    TooFewExtents {
        /// Number of zones.
        zones: u16,
        /// Space on each member.
        ring_bytes: u64,
        /// Bytes of one extent from each zone.
        cycle_bytes: u64,
    },
    /// A member of no size.
    #[error(
        "a member has less than 4 KiB; give it a size, as in --size 8G, or choose another disk"
    )]
    NoBytes,
    /// A usable range that is none.
    #[error("bytes {begin} to {end} are no part of a member of {size_bytes} bytes")]
    Usable {
        /// First byte of the range.
        begin: u64,
        /// End of the range in bytes.
        end: u64,
        /// Size of the smallest member.
        size_bytes: u64,
    },
    /// A usable range too small for a ring.
    #[error(
        "the usable range has space for {slots} slots of {piece_bytes} bytes; a ring has at least \
         {slots_min}"
    )]
    UsableTooSmall {
        /// Slots that fit.
        slots: u64,
        /// Size of a piece.
        piece_bytes: u32,
        /// Fewest slots.
        slots_min: u64,
    },
    /// Something is wrong with the member at this path.
    #[error("{}: {source}", path.display())]
    At {
        /// Path of the member.
        path: PathBuf,
        /// The error of this member.
        source: Box<Error>,
    },
    /// No volume can have this shape.
    #[error("{members} members with {parity} for parity: a volume has {SHAPES}")]
    Geometry {
        /// Number of members.
        members: usize,
        /// Parity columns.
        parity: u8,
    },
    /// Neither a superblock nor a head of any volume.
    #[error("nothing of a volume was found: no superblock, and no piece that is as its head says")]
    NothingFound,
    /// No member at all was given.
    #[error("no member of a volume was given")]
    NoMembers,
    /// A member of another volume.
    #[error("it belongs to volume {volume_id}, not to that of the other members; leave it out")]
    ForeignMember {
        /// Place among the devices given.
        place: usize,
        /// Id of the volume.
        volume_id: VolumeId,
    },
    /// A member that was replaced by another device since.
    #[error("it was member {member} once and has been replaced since; leave it out")]
    ReplacedMember {
        /// Place among the devices given.
        place: usize,
        /// Number of the member.
        member: MemberId,
    },
    /// A member that the operator has called gone for good since.
    #[error(
        "it was member {member} until it was called gone for good; leave it out, or, to fill the \
         empty seat, take it as a new disk: replace VOLUME {member} PATH --force"
    )]
    GivenUp {
        /// Place among the devices given.
        place: usize,
        /// Number of the member.
        member: MemberId,
    },
    /// The same member lies at two places.
    #[error(
        "member {member} is there twice, {} and {}: one of them is a copy; take it away, and give \
         the original alone",
        path.display(),
        other.display()
    )]
    Copies {
        /// Number of the member.
        member: MemberId,
        /// One of the places.
        path: PathBuf,
        /// The other one.
        other: PathBuf,
    },
    /// Two devices are the same member.
    #[error("member {member} is there twice: one of them is a copy; give the original alone")]
    SameMember {
        /// Place of the second among the devices given.
        place: usize,
        /// Number of the member.
        member: MemberId,
    },
    /// Too few members of the newest epoch to judge what the others may have seen.
    #[error(
        "{present} of the members that recorded last are here and {needed} are needed; missing: \
         {}{}",
        numbers(missing),
        also(failed)
    )]
    Quorum {
        /// How many there are.
        present: usize,
        /// How many it takes.
        needed: usize,
        /// Data columns: with fewer members no recorder can go on, whatever the operator knows.
        data_columns: u8,
        /// Numbers of those that are not here, or were absent when the others recorded last.
        missing: Vec<MemberId>,
        /// Those of them that failed just now.
        failed: Vec<MemberFailure>,
    },
    /// So many members have failed that the others cannot go on.
    #[error("too few members are left, {present} of {needed} that it takes: {}", list(failed))]
    TooFewLeft {
        /// Members left.
        present: usize,
        /// Data columns.
        needed: u8,
        /// Members that failed.
        failed: Vec<MemberFailure>,
    },
    /// A member or newcomer failed while newcomers were to join.
    #[error("nothing has joined the volume, which goes on as it was: {0}")]
    NotJoined(MemberFailure),
    /// The member that was named first cannot be read; any other one would do.
    #[error("{cause}; name another member of the volume in its place")]
    Unreadable { cause: device::Error },
    /// More members are missing than may be lost.
    #[error("{present} members are there, and the volume needs {needed} of them at least")]
    TooFew {
        /// Members there are.
        present: usize,
        /// Data columns.
        needed: u8,
    },
    /// A spare was given as a member.
    #[error("it is a spare and holds nothing yet")]
    IsSpare { place: usize },
    /// The volume has no such member.
    #[error("the volume has no member {member}; its members are 0 to {last}")]
    NoSuchMember {
        /// What was asked for.
        member: MemberId,
        /// Highest number there is.
        last: MemberId,
    },
    /// A volume cannot take this shape now.
    #[error("the ring still holds stripes of {0} earlier shapes; grow when it has passed some")]
    TooManyShapes(usize),
    /// A member that is needed is not at hand.
    #[error("member {member} is not there")]
    Absent { member: MemberId },
    /// What was to be written to a member was computed before members came or went.
    #[error("members came or went since that was read for member {member}")]
    MembersChanged { member: MemberId },
    /// A member does not answer.
    #[error("member {member} did not answer in time")]
    Stalled { member: MemberId },
    /// A member took a write, made it durable, and gives back something else.
    #[error("member {member} does not give back what was written at byte {offset}")]
    NotTaken {
        /// Number of the member.
        member: MemberId,
        /// Byte offset of the write on the member.
        offset: u64,
    },
    /// The processor computes parity wrongly.
    #[error(transparent)]
    Parity(#[from] parity::Error),
    /// A member knows of an epoch that the writer does not know.
    #[error("others have recorded on member {member} while it was away; start the recorder anew")]
    Ahead { member: MemberId },
    /// The writer has lost too many members before, or the volume to another writer.
    #[error("writing has stopped before")]
    Stopped,
    /// Another process has the volume open for writing.
    #[error("{} has it open for writing; stop that first", by.process())]
    Claimed { by: Box<Claim> },
    /// Another process began to open the volume for writing at the same time.
    #[error("{} has opened it for writing at the same time; try again", by.process())]
    ClaimedMeanwhile { by: Box<Claim> },
    /// What should be a claim changes, and is none.
    #[error(
        "something writes to member {member} at byte {CLAIM_OFFSET} again and again, and is no \
         wirespool of this version; stop it first"
    )]
    Contended { member: MemberId },
    /// Another process has opened the volume for writing while this process did not answer.
    #[error(
        "{} has taken over the volume while this process had it open for writing; nothing more \
         was written; let one machine at a time have it",
        by.process()
    )]
    TakenOver { by: Box<Claim> },
    /// The superblock of a member is not what this process wrote or found, but newer.
    #[error("another program has written a superblock to member {member}")]
    Changed { member: MemberId },
    /// A counter of the volume is so high that no volume comes there by itself.
    #[error(
        "its superblocks count more {0} than any volume has; it can be read, but not recorded \
         into: extract what is needed and create a new one"
    )]
    Exhausted(&'static str),
    /// The public keys of those who may read take too much space.
    #[error("{}", KeyLogError::Recipients)]
    Recipients,
    /// The volume is encrypted, and to whom cannot be read on any member.
    #[error("none of its members has a readable list of the recipients of its keys")]
    KeysLost,
    /// All rows of keys hold keys of stripes that are in the ring.
    #[error(
        "it was opened so often within one lap of its ring that there is no space for another \
         data key; it can be read"
    )]
    KeysFull,
    /// A data key could not be made.
    #[error("no data key could be made: {0}")]
    Sealing(String),
    /// The piece size is no power of two between 16 KiB and 2 MiB.
    #[error("piece size {0} is no power of two between 16 KiB and 2 MiB")]
    PieceBytes(u32),
    /// The ring has passed this stripe.
    #[error("stripe {0} has been overwritten")]
    Overwritten(StripeId),
    /// Nothing valid lies where this stripe should be.
    #[error("stripe {0} is damaged or missing")]
    Damaged(StripeId),
    /// Heads of the ring contradict one another beyond what any crash leaves behind.
    #[error(
        "the ring's heads contradict each other around slot {slot}: {reason}; nothing was written"
    )]
    Inconsistent {
        /// The slot.
        slot: SlotNumber,
        /// The contradiction.
        reason: &'static str,
    },
}

impl From<KeyLogError> for Error {
    fn from(error: KeyLogError) -> Self {
        match error {
            KeyLogError::Recipients => Self::Recipients,
            _ => Self::KeysFull,
        }
    }
}

impl Error {
    /// Of a device that claims the seat of `member`, which is not its seat any more.
    pub(crate) fn of_stranger(place: usize, member: MemberId, seat: Option<&MemberEntry>) -> Self {
        match seat {
            Some(seat) if seat.is_vacant() => Self::GivenUp { place, member },
            _ => Self::ReplacedMember { place, member },
        }
    }

    /// The same, where members are missing, with those that have just failed.
    #[must_use]
    pub fn beside(self, failures: &[MemberFailure]) -> Self {
        match self {
            Self::Quorum { present, needed, data_columns, missing, .. } => {
                let failed = failures.to_vec();
                Self::Quorum { present, needed, data_columns, missing, failed }
            }
            other => other,
        }
    }
}

/// What [`Error::Geometry`] says is possible.
const SHAPES: &str = "1 to 24 members, of which 0, 1 or 2 are for parity and the others hold data";

fn numbers(members: &[MemberId]) -> String {
    members.iter().map(MemberId::to_string).collect::<Vec<_>>().join(", ")
}

fn list(failed: &[MemberFailure]) -> String {
    failed.iter().map(MemberFailure::to_string).collect::<Vec<_>>().join("; ")
}

fn also(failed: &[MemberFailure]) -> String {
    if failed.is_empty() { String::new() } else { format!("; {}", list(failed)) }
}
