//! What is done for a volume that is damaged: scrubbing, and salvage of what has no superblocks.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test may stop at once"
)]

mod forged;
mod ring;
mod salvage;
mod scrub;
