//! Why a volume could not be created, inspected or verified.

use core::fmt;
use std::path::{Path, PathBuf};

use blockdev::usage::Use;
use format::superblock::SuperblockError;
use units::{ByteSize, MemberId};

/// Why a job was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Error {
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Blockdev(#[from] blockdev::Error),
    #[error(transparent)]
    Recipients(#[from] encryption::WrapError),
    #[error("{} is not encrypted to {text}; its recipients: {known}", path.display())]
    NoSuchRecipient { path: PathBuf, text: String, known: String },
    #[error(
        "{} would have no recipient left, and nobody could read what is recorded: add another one \
         in the same call",
        path.display()
    )]
    LastRecipient { path: PathBuf },
    #[error("{} is not encrypted: it has no keys that could be destroyed", path.display())]
    NotEncrypted { path: PathBuf },
    #[error(
        "{} has a member that is away or lacks something, and would keep what is to be forgotten; \
         status says which, resilver or replace makes it whole",
        path.display()
    )]
    Absent { path: PathBuf },
    #[error("nothing was overwritten: files in the index directory {} stay", path.display())]
    IndexFiles { path: PathBuf, source: std::io::Error },
    #[error("the volume is erased, but copies of packets stay in {}", path.display())]
    Copies { path: PathBuf, source: std::io::Error },
    #[error("{} was recorded into meanwhile: try again", path.display())]
    WentOn { path: PathBuf },
    #[error("{}: no packets to anchor, or none since --previous", path.display())]
    NothingToAnchor { path: PathBuf },
    #[error(
        "{} is not as the previous anchor saw it ({newest}): verify --anchor says what was changed",
        path.display()
    )]
    OtherThanAnchored { path: PathBuf, newest: format::head::StripeId },
    #[error("cannot write the list of stripes: {0}")]
    List(#[source] std::io::Error),
    #[error("interrupted")]
    BrokenOff,
    #[error("the index directory: {0}")]
    Index(#[from] index::Error),
    #[error(
        "{} has no maximum age: say with --max-age what is too old",
        path.display()
    )]
    NoMaximumAge { path: PathBuf },
    #[error("{}: {doubt}; nothing was erased", path.display())]
    ClockDoubt { path: PathBuf, doubt: writer::ClockDoubt },
    #[error("{} cannot be used as a volume", path.display())]
    Volume { path: PathBuf, source: volume::Error },
    #[error("{}: {reason}{}", path.display(), Remedy(reason))]
    Members { path: PathBuf, reason: volume::Error },
    #[error(
        "{} is no wirespool volume (create makes one; of a disk with partitions, \
         name the partition)",
        path.display()
    )]
    NotAVolume { path: PathBuf },
    #[error("{} is in use: {used}; nothing was changed", path.display())]
    InUse { path: PathBuf, used: Use },
    #[error(
        "{0} has no superblock: it is no wirespool volume, or has lost them all; then name a \
         member that has one: scrub MEMBER --member {0}",
        path.display()
    )]
    Nameless { path: PathBuf },
    #[error(
        "{} is in use, by a recorder perhaps: repairs are written by one process alone; \
         --dry-run only reads",
        path.display()
    )]
    Recording { path: PathBuf },
    #[error("{} is a wirespool volume already; --force destroys what it holds", path.display())]
    IsVolume { path: PathBuf },
    #[error("{} holds {content}; --force destroys it", path.display())]
    Occupied { path: PathBuf, content: guard::Content },
    #[error(transparent)]
    Guard(guard::Refusal),
    #[error("{} exists already and is empty; --force replaces it", path.display())]
    EmptyFile { path: PathBuf },
    #[error(
        "{} exists already, and what it holds is not known; remove it or choose another name",
        path.display()
    )]
    UnknownFile { path: PathBuf },
    #[error("the directory of {} does not exist", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{} would be a new file and needs a size: --size 8G", path.display())]
    NoSize { path: PathBuf },
    #[error(
        "{} is a disk of {}; it is used whole, so leave --size out",
        path.display(), ByteSize(*size_bytes)
    )]
    SizeOfDisk { path: PathBuf, size_bytes: u64 },
    #[error("{} is named twice; every member is a file or a disk of its own", path.display())]
    Twice { path: PathBuf },
    #[error(
        "member {member} of {} holds what the other members do not give, so it cannot be \
         replaced yet: resilver first, or bring the absent members back",
        path.display()
    )]
    StillNeeded { path: PathBuf, member: MemberId },
    #[error(
        "{} has no superblock, and its heads are not those of an absent member of this volume; \
         leave it out, or replace puts it into a member's place",
        path.display()
    )]
    Stranger { path: PathBuf },
    #[error(
        "{} has no superblock, and has recorded since without the members at hand; bring back \
         those that were there, or salvage what they hold",
        path.display()
    )]
    Ahead { path: PathBuf },
    #[error("{} cannot be made a member: {source}; {}", path.display(), OtherPlace(source))]
    NotMade { path: PathBuf, source: device::Error },
    #[error("a volume needs at least one member")]
    NoMember,
    #[error("{} is neither a regular file nor a block device", path.display())]
    NotAFileOrBlockDevice { path: PathBuf },
}

impl From<guard::Refusal> for Error {
    fn from(refusal: guard::Refusal) -> Self {
        match refusal {
            guard::Refusal::Device(error) => Self::Device(error),
            guard::Refusal::Host(error) => Self::Host(error),
            guard::Refusal::Blockdev(error) => Self::Blockdev(error),
            guard::Refusal::InUse { path, used } => Self::InUse { path, used },
            guard::Refusal::Occupied { path, content: guard::Content::Volume } => {
                Self::IsVolume { path }
            }
            guard::Refusal::Occupied { path, content } => Self::Occupied { path, content },
            other => Self::Guard(other),
        }
    }
}

impl Error {
    /// A volume's error with its path, in words that say what to do.
    pub fn of_volume(path: &Path, source: volume::Error) -> Self {
        let path = path.to_path_buf();
        match source {
            volume::Error::NoSuperblock(SuperblockError::Magic) => Self::NotAVolume { path },
            volume::Error::Device(error) => Self::Device(error),
            reason @ (volume::Error::Quorum { .. }
            | volume::Error::TooFewLeft { .. }
            | volume::Error::Unreadable { .. }) => Self::Members { path, reason },
            volume::Error::At { path, source } => Self::of_volume(&path, *source),
            source => Self::Volume { path, source },
        }
    }
}

/// What to do about a member that cannot be written.
struct OtherPlace<'a>(&'a device::Error);

impl fmt::Display for OtherPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_full() {
            "make room there, or choose a smaller size or another place"
        } else {
            "leave it out, or use another disk or folder"
        })
    }
}

/// What to do where members are missing.
struct Remedy<'a>(&'a volume::Error);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volume::Error::Quorum { present, data_columns, missing, .. } = self.0 else {
            return Ok(());
        };
        f.write_str("; bring back what is missing")?;
        if *present >= usize::from(*data_columns) {
            f.write_str(", or, if it is lost, give it up for ever: record")?;
            missing.iter().try_for_each(|member| write!(f, " --without {member}"))?;
        }
        Ok(())
    }
}
