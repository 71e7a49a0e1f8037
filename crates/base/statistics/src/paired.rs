//! What one thing is of another, measured in turn.

use schemars::JsonSchema;
use serde::Serialize;
use units::number::{floor, real_usize};

use crate::sample::Sample;

/// The confidence that is aimed at.
const CONFIDENCE: f64 = 0.95;

/// A ratio of two things that were measured side by side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// The second over the first.
    pub ratio: f64,
    /// The interval that holds it.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// With this confidence, from 0 to 1: few pairs cannot give 0.95.
    pub confidence: f64,
}

impl Effect {
    /// Whether the two differ: the interval has the confidence that is aimed at, and 1 lies
    /// outside.
    pub fn differs(&self) -> bool {
        self.confidence >= CONFIDENCE && (self.low > 1.0 || self.high < 1.0)
    }
}

/// The ratio of the second to the first of pairs of positive values: the median of the means of
/// all two pairs on a logarithmic scale (Hodges and Lehmann 1963), with the interval of Wilcoxon's
/// signed ranks, exact for any number of pairs. `None` without a pair.
pub fn paired(pairs: &[(f64, f64)]) -> Option<Effect> {
    let logs = pairs.iter().map(|(first, second)| (second / first).ln());
    let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
    let sums = logs.iter().enumerate().flat_map(|(at, first)| {
        logs.iter().skip(at).map(move |second| f64::midpoint(*first, *second))
    });
    let means = Sample::new(sums)?;
    let (left_out, confidence) = ends(logs.len());
    let end = |place: usize| means.ascending().get(place).copied().map(f64::exp);
    let (low, high) = (end(left_out)?, end(means.count() - 1 - left_out)?);
    Some(Effect { ratio: means.median().exp(), low, high, confidence })
}

/// How many of the ordered means are left out at either end, and the confidence that remains.
fn ends(pairs: usize) -> (usize, f64) {
    let all = 2.0_f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX));
    if !all.is_finite() {
        return normal_ends(pairs);
    }
    let (mut below, mut left_out) = (0.0, 0);
    let mut confidence = 1.0 - 2.0 / all;
    for (sum, ways) in rank_sums(pairs).into_iter().enumerate() {
        below += ways / all;
        // Leaving out `sum + 1` means loses what has a rank sum of at most `sum`.
        let reached = 1.0 - 2.0 * below;
        if reached < CONFIDENCE {
            break;
        }
        (left_out, confidence) = (sum, reached);
    }
    (left_out, confidence)
}

/// In how many ways signs of the ranks 1 to `count` give each sum of those that are positive.
fn rank_sums(count: usize) -> Vec<f64> {
    let mut ways = vec![1.0];
    for rank in 1..=count {
        let mut longer = ways.clone();
        longer.resize(ways.len() + rank, 0.0);
        for (place, way) in longer.iter_mut().skip(rank).zip(&ways) {
            *place += way;
        }
        ways = longer;
    }
    ways
}

/// Beyond a thousand pairs.
fn normal_ends(pairs: usize) -> (usize, f64) {
    let n = real_usize(pairs);
    let middle = n * (n + 1.0) / 4.0;
    let width = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (floor(middle - 1.96 * width), CONFIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw as _;
    use units::Random;

    #[test]
    fn the_ends_are_those_of_the_table_of_signed_ranks() {
        // Critical values of the two-sided test at 5 %, one less than what is left out plus one.
        for (pairs, left_out) in [(6, 0), (7, 2), (8, 3), (10, 8), (20, 52)] {
            let (found, confidence) = ends(pairs);
            assert_eq!(found, left_out, "{pairs}");
            assert!((0.95..1.0).contains(&confidence), "{pairs}: {confidence}");
        }
        let (_, confidence) = ends(3);
        assert!((confidence - 0.75).abs() < 1e-12, "three pairs give no more");
    }

    #[test]
    fn few_pairs_prove_nothing_however_far_apart() {
        let pairs = [(1.0, 2.0), (1.0, 2.1), (1.0, 2.2)];
        let found = paired(&pairs).unwrap();
        assert!((found.ratio - 2.1).abs() < 0.01 && !found.differs(), "{found:?}");
        assert!(paired(&[]).is_none());
    }

    #[test]
    fn a_ratio_is_found_and_held_as_often_as_it_says() {
        let mut random = Random::new(5);
        let mut noise = || 1.0 + (random.share() - 0.5) * 0.2;
        let (mut held, mut found_equal) = (0, 0);
        for _ in 0..400 {
            let pairs: Vec<(f64, f64)> = (0..8).map(|_| (noise(), 0.9 * noise())).collect();
            let effect = paired(&pairs).unwrap();
            held += i32::from(effect.low <= 0.9 && 0.9 <= effect.high);
            let same: Vec<(f64, f64)> = (0..8).map(|_| (noise(), noise())).collect();
            found_equal += i32::from(!paired(&same).unwrap().differs());
        }
        assert!(held >= 370, "{held} of 400");
        assert!(found_equal >= 370, "{found_equal} of 400");
    }
}
