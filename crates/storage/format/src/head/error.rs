//! Why bytes are not a head.

use thiserror::Error;

/// Why bytes are not a head of this volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeadError {
    /// No head of any volume.
    #[error("no head magic")]
    Magic,
    /// Written by a later format.
    #[error("format version {0} is not known")]
    Version(u16),
    /// The checksum does not match.
    #[error("checksum does not match")]
    Checksum,
    /// Not made with the key of this volume.
    #[error("MAC does not match the volume's key")]
    Mac,
    /// Unknown kind.
    #[error("kind {0} is not known")]
    Kind(u8),
    /// Sizes out of bounds.
    #[error("geometry is out of bounds")]
    Geometry,
    /// Counts out of bounds.
    #[error("counts are out of bounds")]
    Counts,
    /// The common part holds something where this version writes nothing: written again, for a
    /// member that takes another's place, the stripe would have another identity.
    #[error("something is set that this version does not know")]
    Unknown,
}
