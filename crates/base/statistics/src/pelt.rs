//! Where the distribution of a series changes: ED-PELT (Haynes, Fearnhead and Eckley 2017), which
//! asks nothing of the distributions and costs little (PELT: Killick, Fearnhead and Eckley 2012).

use units::number::{floor, real_usize};

use crate::sample::Sample;

/// Times the logarithm of the length: what a further segment has to save.
const PENALTY: f64 = 3.0;

/// For each threshold, how many of the first values lie below it, equal ones by half, doubled.
struct Counts {
    below: Vec<Vec<u32>>,
    len: usize,
}

impl Counts {
    fn new(series: &[f64]) -> Option<Self> {
        let sample = Sample::new(series.iter().copied())?;
        let len = series.len();
        let odds = real_usize(2 * len - 1);
        let count = (4.0 * real_usize(len).ln()).ceil().max(1.0);
        let threshold = |step: usize| {
            let z = -1.0 + (2.0 * real_usize(step) + 1.0) / count;
            let share = 1.0 / (1.0 + odds.powf(-z));
            let place = floor(real_usize(len - 1) * share);
            sample.ascending().get(place).copied().expect("a share of the last place")
        };
        let below = (0..floor(count)).map(threshold).map(|threshold| {
            let mut sum = 0;
            let below = series.iter().map(|value| {
                sum += u32::from(*value < threshold) + u32::from(*value <= threshold);
                sum
            });
            core::iter::once(0).chain(below).collect()
        });
        Some(Self { below: below.collect(), len })
    }

    /// What it costs to call `from..to` one distribution.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let size = real_usize(to - from);
        let entropy = self.below.iter().map(|below| {
            let at = |place: usize| below.get(place).copied().unwrap_or(0);
            let share = f64::from(at(to) - at(from)) / (2.0 * size);
            if share <= 0.0 || share >= 1.0 {
                return 0.0;
            }
            share * share.ln() + (1.0 - share) * (1.0 - share).ln()
        });
        -2.0 * real_usize(2 * self.len - 1).ln() / real_usize(self.below.len())
            * size
            * entropy.sum::<f64>()
    }
}

/// The places at which new segments begin, each of `least` values or more. On its own it finds a
/// change in every fourth series that has none: [`crate::changes`] judges what it finds.
pub fn segments(series: &[f64], least: usize) -> Vec<usize> {
    let (len, least) = (series.len(), least.max(1));
    if len < 2 * least {
        return Vec::new();
    }
    let Some(counts) = Counts::new(series) else { return Vec::new() };
    let penalty = PENALTY * real_usize(len).ln();
    // By end: the least cost of all before it, and where its last segment begins.
    let mut best: Vec<(f64, usize)> = vec![(-penalty, 0); least];
    let mut begins = vec![0];
    for end in least..=len {
        if end >= 2 * least {
            begins.push(end - least);
        }
        let costs: Vec<(f64, usize)> = begins
            .iter()
            .map(|&begin| {
                let before = best.get(begin).map_or(f64::INFINITY, |(cost, _)| *cost);
                (before + counts.cost(begin, end) + penalty, begin)
            })
            .collect();
        let least_cost = costs.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
        let least_cost = least_cost.expect("a series may be one segment");
        best.push(least_cost);
        // What costs more even without a further penalty is never the best again.
        let worth = costs.into_iter().filter(|(cost, _)| *cost <= least_cost.0 + penalty);
        begins = worth.map(|(_, begin)| begin).collect();
    }
    let mut found = Vec::new();
    let mut end = len;
    while let Some(&(_, begin)) = best.get(end).filter(|(_, begin)| *begin > 0) {
        found.push(begin);
        end = begin;
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_levels_part_where_they_meet() {
        let series: Vec<f64> =
            (0..60).map(|at| f64::from(at % 7) + if at < 25 { 0.0 } else { 50.0 }).collect();
        assert_eq!(segments(&series, 10), [25]);
        assert!(segments(&[1.0; 60], 10).is_empty());
        assert!(segments(&series[..19], 10).is_empty() && segments(&[], 1).is_empty());
    }

    #[test]
    fn three_levels_part_twice() {
        let level = |at: u32| {
            if at < 40 {
                0.0
            } else if at < 70 {
                100.0
            } else {
                30.0
            }
        };
        let series: Vec<f64> = (0..120).map(|at| f64::from(at * 13 % 11) + level(at)).collect();
        assert_eq!(segments(&series, 10), [40, 70]);
    }
}
