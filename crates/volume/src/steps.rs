//! What is written to a member one after the other, beside its stripes: superblocks, and the heads
//! that close a slot.
//!
//! All members do theirs at the same time, each in its own order, while stripes complete. So a
//! change of the volume takes as long as the slowest member needs and not as all of them together,
//! and one that does not answer is found late as with any write.

use device::Shared;

/// One of several things that follow each other.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes all of `data`.
    Write {
        /// Byte offset on the member.
        offset: u64,
        data: Shared,
    },
    /// Makes the writes before it durable.
    Flush,
}
