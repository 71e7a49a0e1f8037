//! Latencies by size, fine enough for a tail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::number::to_u64;

/// A latency is known to a 32nd: the five bits below the leading one choose the step.
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;

/// Latencies by size, in steps of about 3 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Shape", into = "Shape")]
pub struct Latencies {
    /// Counts by bucket, up to the last that is not empty.
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// What is written of latencies: what scripts ask for, and the histogram, which has all of it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Shape {
    count: u64,
    min_ns: u64,
    mean_ns: u64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    p99_99_ns: Option<u64>,
    max_ns: u64,
    /// The longest latency of each bucket, and its count.
    histogram: Vec<(u64, u64)>,
}

impl From<Latencies> for Shape {
    fn from(of: Latencies) -> Self {
        Self {
            count: of.count(),
            min_ns: of.min_ns(),
            mean_ns: of.mean_ns(),
            p50_ns: of.quantile_ns(500_000),
            p90_ns: of.quantile_ns(900_000),
            p99_ns: of.quantile_ns(990_000),
            p99_9_ns: of.quantile_ns(999_000),
            p99_99_ns: of.quantile_ns(999_900),
            max_ns: of.max_ns(),
            histogram: of.buckets().collect(),
        }
    }
}

impl From<Shape> for Latencies {
    fn from(shape: Shape) -> Self {
        let Shape { histogram, min_ns, max_ns, mean_ns, .. } = shape;
        Self::from_buckets(&histogram, (min_ns, max_ns, mean_ns))
    }
}

impl Latencies {
    /// Records one latency.
    pub fn add(&mut self, latency_ns: u64) {
        self.min_ns = if self.count == 0 { latency_ns } else { self.min_ns.min(latency_ns) };
        self.add_to_bucket(latency_ns, 1);
        self.max_ns = self.max_ns.max(latency_ns);
        self.sum_ns += u128::from(latency_ns);
    }

    /// So many more of about this size.
    fn add_to_bucket(&mut self, latency_ns: u64, count: u64) {
        let bucket = bucket_of(latency_ns);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        *self.counts.get_mut(bucket).expect("grown to hold it") += count;
        self.count = self.count.saturating_add(count);
    }

    /// From what [`Self::buckets`] gave: a file that is read again.
    pub fn from_buckets(
        buckets: &[(u64, u64)],
        (min_ns, max_ns, mean_ns): (u64, u64, u64),
    ) -> Self {
        let mut latencies = Self { min_ns, max_ns, ..Self::default() };
        for &(latency_ns, count) in buckets {
            latencies.add_to_bucket(latency_ns, count);
        }
        latencies.sum_ns = u128::from(mean_ns) * u128::from(latencies.count);
        latencies
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest, exactly; 0 of none.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The longest, exactly; 0 of none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Their mean, exactly; 0 of none.
    pub fn mean_ns(&self) -> u64 {
        let mean = self.sum_ns / u128::from(self.count.max(1));
        u64::try_from(mean).expect("a mean is no more than the longest")
    }

    /// The latency that `share` of 1 000 000 did not exceed, rounded up by at most a 32nd. `None`
    /// where fewer than ten lie beyond it: a percentile of too few is no percentile.
    pub fn quantile_ns(&self, share: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(share)).div_ceil(1_000_000).max(1);
        if u128::from(self.count) < rank + 10 {
            return None;
        }
        let mut seen = 0_u128;
        let found = self.counts.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        });
        found.map(|bucket| upper_bound(bucket).min(self.max_ns))
    }

    /// The largest latency of each bucket that is not empty, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, &count)| (upper_bound(bucket), count))
    }
}

/// A bucket's place: there are some two thousand.
fn to_usize(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// Below 32 each latency has a bucket of its own.
fn bucket_of(latency_ns: u64) -> usize {
    if latency_ns < STEPS {
        return to_usize(latency_ns);
    }
    let doubling = latency_ns.ilog2() - STEP_BITS;
    let step = (latency_ns >> doubling) - STEPS;
    to_usize((u64::from(doubling) + 1) * STEPS + step)
}

/// The largest latency in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = to_u64(bucket);
    if bucket < STEPS {
        return bucket;
    }
    let (doubling, step) = (bucket / STEPS - 1, bucket % STEPS);
    let next = u128::from(STEPS + step + 1) << doubling;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_known_to_a_32nd() {
        for latency in [0_u64, 1, 31, 32, 33, 63, 64, 1000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let bound = upper_bound(bucket_of(latency));
            assert!(bound >= latency && bound - latency <= latency / 32, "{latency}: {bound}");
        }
        for bucket in 1..1500 {
            assert_eq!(bucket_of(upper_bound(bucket - 1).saturating_add(1)), bucket);
        }
    }

    #[test]
    fn percentiles_come_from_the_ranks_and_from_enough_of_them() {
        let mut latencies = Latencies::default();
        (1..=100_000).for_each(|value| latencies.add(value * 1000));
        for (share, exact) in [(500_000, 50_000_000), (990_000, 99_000_000), (999_900, 99_990_000)]
        {
            let found = latencies.quantile_ns(share).unwrap();
            assert!((exact..=exact + exact / 32).contains(&found), "{share}: {found}");
        }
        assert_eq!(latencies.quantile_ns(999_990), None, "one of 100 000 lies beyond");
        assert_eq!((latencies.min_ns(), latencies.max_ns()), (1000, 100_000_000));
        assert_eq!((latencies.mean_ns(), Latencies::default().mean_ns()), (50_000_500, 0));
    }

    #[test]
    fn what_was_written_down_is_read_again() {
        let mut latencies = Latencies::default();
        for value in [5, 700, 701, 90_000_000] {
            latencies.add(value);
        }
        let buckets: Vec<_> = latencies.buckets().collect();
        let ends = (latencies.min_ns(), latencies.max_ns(), latencies.mean_ns());
        let again = Latencies::from_buckets(&buckets, ends);
        assert_eq!(again.buckets().collect::<Vec<_>>(), buckets);
        assert_eq!((again.count(), again.max_ns(), again.mean_ns()), (4, 90_000_000, ends.2));
    }
}
