//! Why a session could not be found or extracted.

use std::path::PathBuf;

use thiserror::Error;

/// Why finding or extracting failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The member could not be opened or read.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The volume could not be opened or read.
    #[error(transparent)]
    Volume(#[from] volume::Error),
    /// The volume is encrypted, and no identity was given.
    #[error(
        "{path} is encrypted: name the file of a private key with --identity FILE (its recipients: \
         {recipients})",
        path = path.display()
    )]
    Locked {
        /// The volume.
        path: PathBuf,
        /// Texts of their public keys.
        recipients: String,
    },
    /// None of the identities opens a key of the volume.
    #[error(
        "{path} is encrypted to others than the identities given; its recipients: {recipients}",
        path = path.display()
    )]
    NotForThese {
        /// The volume.
        path: PathBuf,
        /// Texts of their public keys.
        recipients: String,
    },
    /// A segment's index is damaged beyond what its checksums catch.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] packet_output::Error),
    /// The packet filter could not be compiled, or libpcap is not there.
    #[error(transparent)]
    Filter(filters::Error),
    /// Packets without an index could not be indexed on the way.
    #[error("cannot index packets on the way: {0}")]
    Indexer(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}
