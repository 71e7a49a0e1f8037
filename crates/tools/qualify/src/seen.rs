//! What a measurement shows of a disk, beside what the disk claims to be.

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::{Cause, Extents, PartResult, Passes, Reads};

/// A jump, or a random read, below this is none of an arm: half a turn at 15 000 a minute is 2 ms.
const ARM_NS: u64 = 2_000_000;
/// And below this it is none of an arm whatever lies in caches.
const NO_ARM_NS: u64 = 1_000_000;
/// Shingled tracks that must be cleaned give less than this part of the first pass, in thousandths.
const CLEANING: u64 = 500;

/// What was seen. What no part could show is `None`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Seen {
    /// It has an arm that must move and platters that must turn.
    pub turns: Option<bool>,
    /// The time of a random read, else of a jump, by which that was found.
    pub access_ns: Option<u64>,
    /// It slows down by what was written and not by place: a cache in front of something slow.
    pub has_cache: Option<bool>,
    /// Writing over what was written is slower by far, as on shingled tracks that a drive hides.
    pub is_shingled: Option<bool>,
}

/// What the parts show.
pub fn seen(parts: &[PartResult]) -> Seen {
    let mut seen = Seen::default();
    for part in parts {
        match part {
            PartResult::Extents(extents) => seen.by_jumps(extents),
            PartResult::Reads(reads) => seen.by_reads(reads),
            PartResult::Passes(passes) => seen.by_passes(passes),
            _ => {}
        }
    }
    seen
}

impl Seen {
    /// A jump while writing may end in a cache: fast ones prove nothing, slow ones do.
    fn by_jumps(&mut self, extents: &Extents) {
        if self.turns.is_none() && extents.jump_ns >= ARM_NS {
            (self.turns, self.access_ns) = (Some(true), Some(extents.jump_ns));
        }
    }

    fn by_reads(&mut self, reads: &Reads) {
        let Some(ns) = missed_ns(reads) else { return };
        if !(NO_ARM_NS..ARM_NS).contains(&ns) {
            (self.turns, self.access_ns) = (Some(ns >= ARM_NS), Some(ns));
        }
    }

    fn by_passes(&mut self, passes: &Passes) {
        self.has_cache = Some(passes.cause == Cause::Amount);
        self.is_shingled = Some(passes.second_to_first < CLEANING);
    }
}

/// Half of the reads that no cache answered took no longer; `None` where those were few.
pub(crate) fn missed_ns(reads: &Reads) -> Option<u64> {
    let missed = reads.latency.count().saturating_sub(reads.cache_hits);
    if missed * 2 < reads.latency.count() {
        return None;
    }
    let middle = 1_000_000 - missed * 500_000 / reads.latency.count().max(1);
    let middle = u32::try_from(middle).expect("at most a million");
    reads.latency.quantile_ns(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vitals::Latencies;

    fn reads(buckets: &[(u64, u64)], cache_hits: u64) -> PartResult {
        let ends = (buckets[0].0, buckets[buckets.len() - 1].0, buckets[0].0);
        let latency = Latencies::from_buckets(buckets, ends);
        PartResult::Reads(Reads { latency, cache_hits, ..Reads::default() })
    }

    #[test]
    fn an_arm_shows_in_reads_that_no_cache_answered() {
        let turns = |parts: &[PartResult]| seen(parts).turns;
        assert_eq!(turns(&[reads(&[(8_000_000, 100)], 0)]), Some(true));
        assert_eq!(turns(&[reads(&[(90_000, 100)], 0)]), Some(false));
        assert_eq!(turns(&[reads(&[(90_000, 40), (9_000_000, 60)], 40)]), Some(true));
        // Nearly all came from a cache: what lies behind it is not known.
        assert_eq!(turns(&[reads(&[(90_000, 90), (9_000_000, 10)], 90)]), None);
    }

    #[test]
    fn a_fast_jump_proves_nothing_and_a_slow_one_an_arm() {
        let jump = |jump_ns| PartResult::Extents(Extents { jump_ns, ..Extents::default() });
        assert_eq!((seen(&[jump(9_000_000)]).turns, seen(&[jump(100)]).turns), (Some(true), None));
    }

    #[test]
    fn a_second_pass_that_crawls_is_that_of_shingled_tracks() {
        let passes = |second_to_first, cause| {
            PartResult::Passes(Passes { cause, second_to_first, ..Passes::default() })
        };
        let found = seen(&[passes(200, Cause::Pass)]);
        assert_eq!((found.is_shingled, found.has_cache), (Some(true), Some(false)));
        let found = seen(&[passes(980, Cause::Amount)]);
        assert_eq!((found.is_shingled, found.has_cache), (Some(false), Some(true)));
    }
}
