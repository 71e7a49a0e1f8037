//! Why a statement could not be made or checked.

use std::io;
use std::path::PathBuf;

use evidence::{AnchorError, KeyError, ReceiptError, StampError, WitnessError};
use manifest::ManifestError;
use page::safe;

/// Why a statement could not be made or checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Error {
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Upkeep(#[from] upkeep::Error),
    #[error(transparent)]
    NotCompared(#[from] session_view::NotCompared),
    #[error("the anchor is written, but no line can be appended to {}", safe::path(path))]
    Append { path: PathBuf, source: io::Error },
    #[error("{} exists already; --force replaces it", safe::path(path))]
    Exists { path: PathBuf },
    #[error("{} exists already, and no receipt is replaced; name another file", safe::path(path))]
    Kept { path: PathBuf },
    #[error("{}: {}", safe::path(path), safe::printable(&reason.to_string()))]
    Key { path: PathBuf, reason: KeyError },
    #[error("{}: {reason}", safe::path(path))]
    Authorities { path: PathBuf, reason: StampError },
    #[error("cannot use the anchor {}", safe::path(path))]
    Anchor { path: PathBuf, source: AnchorError },
    #[error("cannot use the witness file {}", safe::path(path))]
    Witness { path: PathBuf, source: WitnessError },
    #[error("{} has no line of this volume", safe::path(path))]
    NoLine { path: PathBuf },
    #[error("cannot read the manifest {}", safe::path(path))]
    Manifest { path: PathBuf, source: ManifestError },
    #[error(
        "cannot read the manifest {}: it is no text; the manifest comes first, then the extract",
        safe::path(path)
    )]
    NoText { path: PathBuf },
    #[error("{} is a manifest: name its extract, too", safe::path(path))]
    NoFile { path: PathBuf },
    #[error("{}", safe::path(path))]
    Receipt { path: PathBuf, source: ReceiptError },
    #[error("cannot read {}", safe::path(path))]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "the escrow is that of another extract, {}: {} has addresses of another key",
        safe::printable(of),
        safe::path(path)
    )]
    OtherEscrow { path: PathBuf, of: String },
    #[error("cannot look into {}", safe::path(path))]
    Raw { path: PathBuf, source: raw::Error },
    #[error("the manifest has no output named {name}")]
    NoOutput { name: String },
}

impl Error {
    /// What was given is wrong, rather than what was found.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Key { .. }
                | Self::Authorities { .. }
                | Self::NoLine { .. }
                | Self::NoOutput { .. }
                | Self::NoFile { .. }
        )
    }
}
