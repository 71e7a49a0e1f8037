//! What can go wrong with disks and partitions.

use std::path::{Path, PathBuf};

/// Why the operating system refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed, and no more is known of it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A partition table could not be laid out or written.
    #[error("cannot write a partition table to {}", path.display())]
    PartitionTable {
        /// The disk.
        path: PathBuf,
        /// The reason.
        source: ::gpt::GptError,
    },
    /// The table is written, and the kernel shows no partition.
    #[error("{} has its partition table, but the kernel shows no partition", path.display())]
    NoPartition {
        /// The disk.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn path(
        operation: &'static str,
        path: &Path,
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self::Host(host::Error::path(operation, path, source))
    }
}
