//! Disks and partitions as the kernel and the drives tell of them: what carries a disk and how it
//! is, what uses it, what lies on it, and where on it a file lies; and a partition table, written.
//!
//! Not here: reading and writing of members, which is `device`'s. Nothing here decides; `upkeep`
//! and `guard` refuse a target by what this crate finds.

pub mod disk;
pub mod drive;
mod error;
pub mod gpt;
mod listing;
pub mod owners;
pub mod placement;
pub mod signature;
mod space;
#[doc(hidden)]
pub mod untrusted;
pub mod usage;

pub use error::Error;
pub use listing::{DiskKind, ListedDisk, disks};
pub use space::{extents, free_bytes};
