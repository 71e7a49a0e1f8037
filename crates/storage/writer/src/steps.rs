//! What is written to a member one after the other, beside its stripes: superblocks, claims, and
//! the heads that close a slot.
//!
//! All members do theirs at the same time, each in its own order, while stripes complete. So a
//! change of the volume takes as long as the slowest member needs and not as all of them together,
//! and one that does not answer is found late as with any write.

use device::{Pool, Shared};
use format::superblock::{Superblock, copy_offset};
use volume::superblocks::ORDER;

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
    /// What lies in the place of the claim must be no other writer's.
    CompareClaim,
    /// The first superblock copy must be none that another writer sent.
    CompareSuperblock,
    /// Writes the next renewal of the claim: both were compared.
    Renew,
    /// Writes that the claim has ended.
    EndClaim,
}

/// The claim is compared and renewed, as often as its interval says.
pub(crate) const BEAT: [Step; 2] = [Step::CompareClaim, Step::Renew];
/// The same with a look at the superblock, which writers change that make no claims.
pub(crate) const RENEWAL: [Step; 3] = [Step::CompareClaim, Step::CompareSuperblock, Step::Renew];

/// Writing all copies of a member durably. There is a page for each in `pages`.
pub(crate) fn of_superblock(superblock: &Superblock, size_bytes: u64, pages: &Pool) -> Vec<Step> {
    let page = |&copy: &u8| {
        let mut page = pages.take().expect("a page for every copy");
        page.copy_from_slice(&superblock.encode(copy));
        Step::Write { offset: copy_offset(copy, size_bytes), data: page.freeze() }
    };
    ORDER.into_iter().flat_map(|copies| copies.iter().map(page).chain([Step::Flush])).collect()
}
