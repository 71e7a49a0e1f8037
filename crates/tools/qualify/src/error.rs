//! Why a target was refused, or a part failed.

use std::path::PathBuf;

use blockdev::usage::Use;
use units::ByteSize;

use crate::plan::Part;

/// Why a qualification was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Error {
    #[error("{0}")]
    Words(String),
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Blockdev(#[from] blockdev::Error),
    #[error("{} is no zone profile", path.display())]
    Profile { path: PathBuf, source: device::ProfileError },
    #[error("part {part} needs at least {}", ByteSize(*minimum_bytes))]
    TooSmall { part: Part, minimum_bytes: u64 },
    #[error(
        "part {part} writes, and {path} may only be read; {}", remedy(*is_device),
        path = path.display()
    )]
    ReadOnly { part: Part, path: PathBuf, is_device: bool },
    #[error("checksums and parity cannot be computed on this processor")]
    NoCodec,
    #[error("part files makes files in a directory: name one, or a path in it at which nothing is")]
    NoFolder,
    #[error("part cpu measures this machine, and a modelled disk has none")]
    NoProcessor,
    #[error("the report that is to be resumed is of another target: its {what} differs")]
    OtherTarget { what: &'static str },
    #[error(
        "the report that is to be resumed was judged with a pool of {}; give --pool {was_bytes}",
        ByteSize(*was_bytes)
    )]
    OtherPool { was_bytes: u64 },
    #[error("the report so far cannot be kept")]
    Keep(#[source] host::Error),
    #[error("{} is neither a file, a directory nor a block device", path.display())]
    NotATarget { path: PathBuf },
    #[error(
        "this process may write files of {} at most, and the file is to have {}: raise the limit \
         (ulimit -f unlimited), or give a smaller --size",
        ByteSize(*most_bytes), ByteSize(*size_bytes)
    )]
    FileLimit { size_bytes: u64, most_bytes: u64 },
    #[error("the directory of {} does not exist", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{} is no device, and --destroy is for devices", path.display())]
    NotADevice { path: PathBuf },
    #[error(
        "{} is {name}, not {given}; nothing was written (--destroy {name} agrees to the loss of \
         all that it holds)",
        path.display()
    )]
    OtherDevice { path: PathBuf, name: String, given: String },
    #[error("{} is in use: {used}; nothing was written", path.display())]
    InUse { path: PathBuf, used: Use },
    #[error(
        "{} holds {content}; nothing was written (--overwrite {} agrees to its loss)",
        path.display(), quoted(content.kind())
    )]
    Occupied { path: PathBuf, content: guard::Content },
    #[error(transparent)]
    Guard(guard::Refusal),
}

impl From<guard::Refusal> for Error {
    fn from(refusal: guard::Refusal) -> Self {
        match refusal {
            guard::Refusal::Device(error) => Self::Device(error),
            guard::Refusal::Host(error) => Self::Host(error),
            guard::Refusal::Blockdev(error) => Self::Blockdev(error),
            guard::Refusal::OtherDevice { path, name, given } => {
                Self::OtherDevice { path, name, given }
            }
            guard::Refusal::InUse { path, used } => Self::InUse { path, used },
            guard::Refusal::Occupied { path, content } => Self::Occupied { path, content },
            other => Self::Guard(other),
        }
    }
}

fn remedy(is_device: bool) -> &'static str {
    if is_device {
        "--destroy NAME agrees to the loss of all that it holds"
    } else {
        "name a directory, or a file that is not there yet, and one is made and removed"
    }
}

/// Names with blanks or strokes as a shell takes them.
fn quoted(kind: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric();
    if kind.chars().all(is_plain) { kind.to_owned() } else { format!("'{kind}'") }
}
