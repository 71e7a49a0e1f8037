//! What can go wrong with a volume.

use format::head::StripeId;
use format::superblock::SuperblockError;
use thiserror::Error;

/// Why an operation on a volume failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A member could not be read or written.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// No superblock copy is valid: not a member of a volume, or all four are damaged.
    #[error("no superblock found ({0})")]
    NoSuperblock(SuperblockError),
    /// The device is smaller than the superblock says.
    #[error("member has {actual} bytes, the volume was created with {expected}")]
    Shrunk {
        /// Bytes there are.
        actual: u64,
        /// Bytes the ring reaches to.
        expected: u64,
    },
    /// Too small for a ring.
    #[error(
        "{size_bytes} bytes are too few; a volume with pieces of {piece_bytes} needs {needed_bytes}"
    )]
    TooSmall {
        /// Bytes offered.
        size_bytes: u64,
        /// Chosen piece size.
        piece_bytes: u32,
        /// Smallest size that works.
        needed_bytes: u64,
    },
    /// A geometry that a later version of the format writes.
    #[error(
        "the volume has {data} data and {parity} parity columns; this version opens volumes of one \
         member without parity"
    )]
    Geometry {
        /// Data columns.
        data: u8,
        /// Parity columns.
        parity: u8,
    },
    /// The piece size is no power of two between 16 KiB and 2 MiB.
    #[error("piece size {0} is no power of two between 16 KiB and 2 MiB")]
    PieceBytes(u32),
    /// The ring has passed this stripe.
    #[error("stripe {0} has been overwritten")]
    Overwritten(StripeId),
    /// Nothing valid lies where this stripe should be.
    #[error("stripe {0} is damaged or missing")]
    Damaged(StripeId),
    /// Heads of the ring contradict one another beyond what any crash leaves behind.
    #[error(
        "the ring's heads contradict each other around slot {slot}: {reason}; nothing was written"
    )]
    Inconsistent {
        /// Where.
        slot: u64,
        /// What was found.
        reason: &'static str,
    },
}
