//! From the times at which writes were done to the rate that a disk guarantees.

use crate::number::{real, whole};

/// Steps that are kept: 16 MiB of memory. Of a longer run neighbours are joined, so that of 32 TB
/// a step is 32 MB, little against a pool.
const STEPS_MAX: usize = 1 << 20;
/// Laps of the ring that a rate must survive: what the end of one leaves over, the next begins
/// with.
const LAPS: usize = 2;
/// Of a pool only so much is believed: a run of fewer than 20 pools says little of how it empties.
pub(crate) const POOLS_MIN: u64 = 20;
/// Halvings of an interval of at most 2^40 bytes a second: the last is of one byte.
const BISECTIONS: usize = 40;

/// Writes in the order in which they were done.
///
/// Joined steps are judged as if their bytes came as late as they can, and helped as little: what
/// waits is found too much by that, by at most two steps, and a rate never too high.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    steps: Vec<Step>,
    /// The last one, which does not have its writes together yet.
    open: Step,
    /// Writes in `open`, and how many a step has.
    writes: u32,
    writes_per_step: u32,
    /// Time behind the last write, in which the disk's cache was emptied.
    end_ns: u64,
}

/// Time since the write before, and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    ns: u64,
    bytes: u64,
}

impl Step {
    fn join(self, other: Self) -> Self {
        Self { ns: self.ns + other.ns, bytes: self.bytes + other.bytes }
    }
}

impl Trace {
    /// A write of `bytes` was done `ns` after the one before it.
    pub fn push(&mut self, ns: u64, bytes: u64) {
        self.open = self.open.join(Step { ns, bytes });
        self.writes += 1;
        if self.writes < self.writes_per_step.max(1) {
            return;
        }
        self.steps.push(core::mem::take(&mut self.open));
        self.writes = 0;
        if self.steps.len() == STEPS_MAX {
            let pairs = self.steps.as_chunks::<2>().0.iter();
            self.steps = pairs.map(|[first, second]| first.join(*second)).collect();
            self.writes_per_step = self.writes_per_step.max(1) * 2;
        }
    }

    /// The last write was done, and the disk needed `ns` more until all of them lay on the medium.
    /// That time lowers the mean, which no rate exceeds. It is no stall: a ring goes on, and its
    /// cache does not have to be empty at the end of a lap.
    pub fn end(&mut self, ns: u64) {
        self.end_ns += ns;
    }

    /// The writes of the first `bytes`; of a step that reaches beyond them nothing.
    pub(crate) fn prefix(&self, bytes: u64) -> Self {
        if bytes >= self.bytes() {
            return self.clone();
        }
        let mut sum = 0;
        let within = self.steps().take_while(|step| {
            sum += step.bytes;
            sum <= bytes
        });
        Self { steps: within.collect(), writes_per_step: self.writes_per_step, ..Self::default() }
    }

    fn steps(&self) -> impl Iterator<Item = Step> + Clone {
        let open = (self.writes > 0).then_some(self.open);
        self.steps.iter().copied().chain(open)
    }

    /// Bytes of all writes.
    pub fn bytes(&self) -> u64 {
        self.steps().map(|step| step.bytes).sum()
    }

    /// Time of all writes, and until they lay on the medium.
    pub fn ns(&self) -> u64 {
        self.steps().map(|step| step.ns).sum::<u64>() + self.end_ns
    }

    /// Bytes a second over everything; 0 of nothing.
    pub fn mean(&self) -> f64 {
        real(self.bytes()) * 1e9 / real(self.ns().max(1))
    }

    /// The largest constant arrival, in bytes a second, of which never more than `pool_bytes` wait,
    /// if the disk goes on like this lap after lap: Lindley's recursion, and bisection. At most the
    /// mean.
    pub fn guaranteed(&self, pool_bytes: u64) -> u64 {
        let (mut low, mut high) = (0.0, self.mean());
        if self.is_carried(high, pool_bytes) {
            return whole(high.floor());
        }
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(low, high);
            if self.is_carried(middle, pool_bytes) {
                low = middle;
            } else {
                high = middle;
            }
        }
        whole(low.floor())
    }

    /// The guaranteed rate with as much of a pool as so long a run proves, and that pool.
    pub(crate) fn believed(&self, pool_bytes: u64) -> (u64, u64) {
        let pool_bytes = pool_bytes.min(self.bytes() / POOLS_MIN);
        (pool_bytes, self.guaranteed(pool_bytes))
    }

    /// Whether so many bytes a second are at most what [`Self::believed`] guarantees: found in one
    /// look at the steps.
    pub(crate) fn carries(&self, bytes_per_s: u64, pool_bytes: u64) -> bool {
        let pool_bytes = pool_bytes.min(self.bytes() / POOLS_MIN);
        real(bytes_per_s) <= self.mean() && self.is_carried(real(bytes_per_s), pool_bytes)
    }

    /// Whether the backlog stays within the pool. What a write frees is free when it is done, so
    /// the backlog just before counts. Of joined writes some may have been done while nothing
    /// waited: they take nothing from what arrived behind them.
    fn is_carried(&self, bytes_per_s: f64, pool_bytes: u64) -> bool {
        let (per_ns, pool) = (bytes_per_s / 1e9, real(pool_bytes));
        let mut backlog = 0.0_f64;
        (0..LAPS).flat_map(|_| self.steps()).all(|step| {
            let (arriving, done) = (per_ns * real(step.ns), real(step.bytes));
            let most = backlog + arriving;
            backlog = if self.writes_per_step > 1 {
                (backlog - done).max(0.0) + arriving
            } else {
                (most - done).max(0.0)
            };
            most <= pool
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(steps: &[(u64, u64)]) -> Trace {
        let mut trace = Trace::default();
        for &(ns, bytes) in steps {
            trace.push(ns, bytes);
        }
        trace
    }

    /// The minimum service curve, as the definition has it: over all intervals that begin behind a
    /// completion and end just before one.
    fn naive(steps: &[(u64, u64)], pool_bytes: u64) -> f64 {
        let laps: Vec<_> = steps.iter().chain(steps).copied().collect();
        let mean = trace(steps).mean();
        let mut least = mean;
        for begin in 0..laps.len() {
            let (mut ns, mut bytes) = (0, 0);
            for (step_ns, step_bytes) in &laps[begin..] {
                ns += step_ns;
                if ns > 0 {
                    least = least.min(real(bytes + pool_bytes) * 1e9 / real(ns));
                }
                bytes += step_bytes;
            }
        }
        least
    }

    proptest! {
        #[test]
        fn the_recursion_finds_what_the_definition_says(
            steps in prop::collection::vec((1_u64..2_000_000_000, 0_u64..100_000_000), 1..40),
            pool_bytes in 1_u64..500_000_000,
        ) {
            let found = real(trace(&steps).guaranteed(pool_bytes));
            let expected = naive(&steps, pool_bytes);
            prop_assert!((found - expected).abs() <= 2.0 + expected * 1e-9, "{found} {expected}");
        }

        #[test]
        fn joining_steps_never_promises_more(
            steps in prop::collection::vec((1_u64..1_000_000, 1_u64..1_000_000), 8..60),
            pool_bytes in 1_u64..5_000_000,
        ) {
            let fine = trace(&steps).guaranteed(pool_bytes);
            let mut joined = Trace { writes_per_step: 3, ..Trace::default() };
            for &(ns, bytes) in &steps {
                joined.push(ns, bytes);
            }
            let all = trace(&steps);
            prop_assert_eq!((joined.bytes(), joined.ns()), (all.bytes(), all.ns()));
            prop_assert!(joined.guaranteed(pool_bytes) <= fine + 1);
        }
    }

    #[test]
    fn a_pool_carries_what_a_slow_stretch_leaves_over() {
        // 100 bytes a second for 10 s, then 50 for 10 s: at rate r the backlog grows to
        // 10 (r - 50) and what arrives during one write, r; a pool of 220 carries r = 65.
        let steps = [[(1_000_000_000, 100); 10], [(1_000_000_000, 50); 10]].concat();
        let trace = trace(&steps);
        assert_eq!((trace.bytes(), trace.ns()), (1500, 20_000_000_000));
        let check = |pool: u64, rate: u64| assert!(trace.guaranteed(pool).abs_diff(rate) <= 1);
        check(50, 50);
        check(215, 65 - 1);
        check(10_000, 75);
    }

    #[test]
    fn a_stall_costs_what_arrives_while_it_lasts() {
        // 1000 writes of 1000 bytes, a millisecond each, and one that takes 301 ms.
        let mut steps = vec![(1_000_000, 1000); 1000];
        let steady = trace(&steps).guaranteed(100_000);
        steps[500].0 += 300_000_000;
        let stalled = trace(&steps).guaranteed(100_000);
        // 100 000 bytes of pool in 301 ms.
        assert!(stalled.abs_diff(332_225) <= 2, "{stalled}");
        assert!(steady.abs_diff(1_000_000) <= 1, "{steady}");
    }

    #[test]
    fn the_first_part_of_a_run_is_judged_by_itself() {
        let steps = [[(1_000_000_000, 100); 10], [(1_000_000_000, 50); 10]].concat();
        let all = trace(&steps);
        let (first, whole) = (all.prefix(1000), all.prefix(1500));
        assert_eq!((first.bytes(), first.guaranteed(100), &whole), (1000, 100, &all));
        assert_eq!((all.prefix(1049).bytes(), all.prefix(1050).bytes()), (1000, 1050));
        assert_eq!(all.prefix(0).guaranteed(100), 0);
    }

    #[test]
    fn emptying_the_cache_lowers_the_mean_and_is_no_stall() {
        let mut trace = trace(&[(1_000_000_000, 100); 10]);
        assert_eq!(trace.guaranteed(100), 100);
        trace.end(2_500_000_000);
        assert_eq!(trace.guaranteed(100), 80);
        assert!(trace.guaranteed(40).abs_diff(40) <= 1);
    }

    #[test]
    fn a_long_trace_is_kept_in_bounds_with_all_its_bytes() {
        let mut trace = Trace::default();
        (0..3_000_001).for_each(|_| trace.push(10, 7));
        assert!(trace.steps.len() <= STEPS_MAX);
        assert_eq!((trace.bytes(), trace.ns()), (21_000_007, 30_000_010));
        assert_eq!(trace.guaranteed(1000), 700_000_000);
        assert_eq!(Trace::default().guaranteed(5), 0);
    }
}
