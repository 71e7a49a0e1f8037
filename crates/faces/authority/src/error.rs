//! Why nothing was issued.

use std::path::PathBuf;

use page::safe;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// There is one already.
    #[error("{}: there is an authority already; nothing is replaced", safe::path(folder))]
    Exists {
        /// Its folder.
        folder: PathBuf,
    },
    /// There is none.
    #[error(
        "{}: there is no authority; `wirespool fleet enrol init` makes one",
        safe::path(folder)
    )]
    Absent {
        /// Its folder.
        folder: PathBuf,
    },
    /// A file of it has something in it that it cannot have.
    #[error("{}: {why}", safe::path(path))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The newest certificate of a key was revoked.
    #[error(
        "{}: what was issued for this key is revoked; move it away, and there will be a new one",
        safe::path(key)
    )]
    Revoked {
        /// The key.
        key: PathBuf,
    },
    /// A name that no certificate has.
    #[error("{0:?} is no name: letters, digits, - _ and . are, 40 at most")]
    Name(String),
    /// An address that no certificate can have.
    #[error("{0:?} is no address: a name or a number of a host, without a port")]
    Address(String),
    /// Nobody has a certificate of this name.
    #[error("nobody has a certificate with the name {0:?}{1}")]
    Unknown(String, String),
    /// A certificate that cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}

impl Error {
    /// What was asked for makes no sense.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Name(_) | Self::Address(_) | Self::Unknown(..))
    }
}
