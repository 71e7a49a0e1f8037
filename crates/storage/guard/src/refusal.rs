//! What lies on a device, and why it may not be written to.

use std::path::PathBuf;

use blockdev::signature::Signature;
use blockdev::usage::Use;
use format::claim::Claim;

/// Something that lies on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// What another program signed, on the device or on a partition of it, by its kernel name.
    Foreign(Signature, Option<String>),
    /// A volume of ours.
    Volume,
    /// Data without a signature, at this byte.
    Data(u64),
}

impl Content {
    /// The word that agrees to its loss.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Foreign(found, _) => found.kind,
            Self::Volume => "volume",
            Self::Data(_) => "data",
        }
    }
}

impl core::fmt::Display for Content {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Foreign(found, None) => write!(f, "{found}"),
            Self::Foreign(found, Some(partition)) => write!(f, "{found} on {partition}"),
            Self::Volume => f.write_str("a wirespool volume"),
            Self::Data(offset) => write!(f, "data at byte {offset} that no program signed"),
        }
    }
}

/// Why a device may not be written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Refusal {
    #[error(transparent)]
    Device(#[from] device::Error),
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Blockdev(#[from] blockdev::Error),
    #[error("{} is no block device", path.display())]
    NotADevice { path: PathBuf },
    #[error("{} is {name}, not {given}", path.display())]
    OtherDevice { path: PathBuf, name: String, given: String },
    #[error("{} is in use: {used}", path.display())]
    InUse { path: PathBuf, used: Use },
    #[error("{} holds {content}", path.display())]
    Occupied { path: PathBuf, content: Content },
    #[error(
        "{} belongs to a volume, and {} has it open for writing; stop that first",
        path.display(),
        process_of(by.as_deref())
    )]
    Owned { path: PathBuf, by: Option<Box<Claim>> },
}

/// Of a claim that can be read.
fn process_of(by: Option<&Claim>) -> String {
    by.map_or_else(|| "another process".to_owned(), Claim::process)
}
