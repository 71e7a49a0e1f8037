//! Lengths of time by size.

/// Steps per doubling, by so many bits below the leading one: a latency is known to an eighth.
const STEP_BITS: u32 = 3;
const STEPS: u64 = 1 << STEP_BITS;
const BUCKET_COUNT: usize = 512;

/// Latencies by size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKET_COUNT],
    count: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKET_COUNT], count: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Records one latency.
    pub fn add(&mut self, latency_ns: u64) {
        self.count += 1;
        self.max_ns = self.max_ns.max(latency_ns);
        let bucket =
            self.buckets.get_mut(bucket_of(latency_ns)).expect("512 buckets cover 64 bits");
        *bucket += 1;
    }

    /// Takes in what another one has seen.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many were within each doubling: its lower bound, and the count, from the first to the
    /// last that has any.
    pub fn doublings(&self) -> Vec<(u64, u64)> {
        let steps = usize::try_from(STEPS).expect("eight");
        let of = |(at, eight): (usize, &[u64])| (lower_bound(at * steps), eight.iter().sum());
        let all: Vec<(u64, u64)> = self.buckets.chunks(steps).enumerate().map(of).collect();
        let is_used = |(_, count): &(u64, u64)| *count > 0;
        let first = all.iter().position(is_used).unwrap_or(all.len());
        let end = all.iter().rposition(is_used).map_or(first, |last| last + 1);
        all.get(first..end).unwrap_or_default().to_vec()
    }

    /// Each step that has any: from, the first latency beyond it, and the count.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let used = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(at, &count)| (lower_bound(at), upper_bound(at).saturating_add(1), count))
    }

    /// Number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest latency, exactly.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency that `permille` of the operations did not exceed, rounded up by at most a
    /// eighth; 0 when nothing was recorded.
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        let mut seen = 0_u64;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if count > 0 && u128::from(seen) * 1000 >= u128::from(self.count) * u128::from(permille)
            {
                return upper_bound(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// The bits below the leading one choose the step.
fn bucket_of(latency_ns: u64) -> usize {
    let value = latency_ns.max(STEPS);
    let shift = value.ilog2() - STEP_BITS;
    let bucket = u64::from(shift) * STEPS + (value >> shift) % STEPS;
    usize::try_from(bucket).expect("at most 495")
}

/// The largest latency in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).expect("at most 511");
    let next = u128::from(STEPS + bucket % STEPS + 1) << (bucket / STEPS);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

/// The smallest latency in a bucket; 0 in the first, which holds whatever is shorter.
fn lower_bound(bucket: usize) -> u64 {
    bucket.checked_sub(1).map_or(0, |before| upper_bound(before).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_known_to_an_eighth() {
        for latency in [0_u64, 3, 7, 8, 9, 15, 16, 100, 1_000_003, u64::MAX / 3, u64::MAX] {
            let bound = upper_bound(bucket_of(latency));
            assert!(bound >= latency, "{latency}");
            assert!(bound / 9 <= latency.max(8) / 8, "{latency} became {bound}");
        }
    }

    #[test]
    fn quantiles_come_from_the_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_ns(500), 0);
        (1..=1000).for_each(|value| histogram.add(value * 1000));
        assert_eq!((histogram.count(), histogram.max_ns()), (1000, 1_000_000));
        for (permille, low, high) in
            [(500, 500_000, 562_500), (990, 990_000, 1_000_000), (0, 1000, 1125)]
        {
            assert!((low..=high).contains(&histogram.quantile_ns(permille)), "{permille}");
        }
    }

    #[test]
    fn merged_counts_are_those_of_both_and_doublings_hold_all() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        (1..=100).for_each(|value| one.add(value * 1000));
        other.add(3);
        one.merge(&other);
        assert_eq!((one.count(), one.max_ns()), (101, 100_000));
        let doublings = one.doublings();
        assert_eq!(doublings.iter().map(|(_, count)| count).sum::<u64>(), 101);
        assert_eq!(doublings.first(), Some(&(0, 1)));
        assert_eq!(doublings.last(), Some(&(65_536, 35)));
        assert!(Histogram::default().doublings().is_empty());
        let steps: Vec<(u64, u64, u64)> = one.steps().collect();
        assert_eq!(steps.iter().map(|(.., count)| count).sum::<u64>(), 101);
        assert_eq!((steps[0], steps[1]), ((0, 9, 1), (960, 1024, 1)));
        assert!(steps.is_sorted_by(|one, next| one.1 <= next.0));
    }
}
