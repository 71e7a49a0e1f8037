//! Why an audit cannot be read or begun.

use std::path::PathBuf;

/// What keeps an audit from being read or begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened, locked or listed.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A file cannot be read to its end.
    #[error("cannot read {}", page::safe::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The thread that writes cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}
