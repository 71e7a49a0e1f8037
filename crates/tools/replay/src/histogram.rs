//! Lengths of time by size.

/// Eight steps per doubling: a time is known to an eighth.
const STEPS: u64 = 8;
const STEP_BITS: u32 = 3;
const BUCKETS: usize = 512;

/// How often which length of time was seen.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: [u64; BUCKETS],
    count: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, max_ns: 0 }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, nanos: u64) {
        let bucket = self.buckets.get_mut(bucket_of(nanos)).expect("512 buckets cover 64 bits");
        *bucket += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(nanos);
    }

    /// Takes in what another one has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The time that `percent` of all did not exceed, rounded up by at most an eighth.
    pub(crate) fn quantile_ns(&self, percent: u64) -> u64 {
        let mut seen = 0_u64;
        for (bucket, &count) in (0..).zip(&self.buckets) {
            seen += count;
            if count > 0 && u128::from(seen) * 100 >= u128::from(self.count) * u128::from(percent) {
                return upper_bound(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// The three bits below the leading one choose the step.
fn bucket_of(nanos: u64) -> usize {
    let value = nanos.max(STEPS);
    let shift = value.ilog2() - STEP_BITS;
    let bucket = u64::from(shift) * STEPS + (value >> shift) % STEPS;
    usize::try_from(bucket).expect("at most 495")
}

/// The largest time in a bucket.
fn upper_bound(bucket: u64) -> u64 {
    let next = u128::from(STEPS + bucket % STEPS + 1) << (bucket / STEPS);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_an_eighth_and_the_largest_exactly() {
        let mut histogram = Histogram::default();
        assert!(histogram.is_empty());
        for nanos in 1..=100_000 {
            histogram.add(nanos);
        }
        for (percent, exact) in [(50, 50_000), (99, 99_000), (1, 1000)] {
            let quantile = histogram.quantile_ns(percent);
            assert!((exact..=exact * 9 / 8).contains(&quantile), "{percent}: {quantile}");
        }
        assert_eq!((histogram.quantile_ns(100), histogram.max_ns()), (100_000, 100_000));
    }

    #[test]
    fn merged_counts_are_those_of_both_and_any_time_has_a_bucket() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        one.add(0);
        other.add(u64::MAX);
        one.merge(&other);
        assert_eq!((one.quantile_ns(50), one.quantile_ns(100)), (8, u64::MAX));
    }
}
