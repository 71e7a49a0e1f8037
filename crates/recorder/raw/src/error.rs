//! Why a raw extract cannot be made or opened.

use std::io;

use units::Timestamp;

/// Why there is no raw extract, or none can be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The volume has no recipients.
    #[error("the volume is not encrypted: extract hands out its packets as they are")]
    NotEncrypted,
    /// Packets of these times were recorded before the volume had recipients.
    #[error(
        "packets of {from} to {to} are not encrypted, and would be readable in the file: ask for \
         later times, or extract them without --raw"
    )]
    Plain {
        /// Earliest packet of the stripe.
        from: Timestamp,
        /// Latest packet of it.
        to: Timestamp,
    },
    /// It was stopped.
    #[error("stopped: nothing was written")]
    Stopped,
    /// The volume.
    #[error(transparent)]
    Volume(#[from] volume::Error),
    /// A member, or a file in the place of one.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The file could not be written.
    #[error("cannot write the raw extract: {0}")]
    Write(#[source] io::Error),
    /// The file could not be read.
    #[error("cannot read the raw extract: {0}")]
    Read(#[source] io::Error),
    /// Another kind of file.
    #[error("it is no raw extract of wirespool")]
    Magic,
    /// Of a later version.
    #[error("the raw extract has version {0}, known is 1")]
    Version(u16),
    /// It ends too early.
    #[error("the raw extract is cut off after {0} bytes: copy it again")]
    CutOff(u64),
    /// It goes on behind its end.
    #[error(
        "the raw extract ends after {0} bytes, and more follow, which no hash covers: cut them off"
    )]
    Further(u64),
    /// Its hash is not that of its bytes.
    #[error("the raw extract was changed or damaged on the way: copy it again")]
    Hash,
    /// Nothing is in it.
    #[error("the raw extract holds no member of a volume")]
    Empty,
    /// What it says of members cannot be.
    #[error("the raw extract names a place that no member has, at byte {0} of it")]
    Place(u64),
}
