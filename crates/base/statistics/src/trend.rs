//! Slow drift.

use schemars::JsonSchema;
use serde::Serialize;
use units::number::real_usize;

use crate::change::CHANGE_LEAST;
use crate::normal::both_tails;
use crate::sample::Sample;

/// Beyond this, points are thinned: all pairs are looked at.
const POINTS_MAX: usize = 2000;
/// Of fewer values a slope is none.
const VALUES_MIN: usize = 10;
/// Chance of a drift that is none.
const P_MAX: f64 = 1e-3;

/// A straight line that a few wild points do not turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trend {
    /// Of y by x: the median of the slopes of all pairs (Theil 1950, Sen 1968).
    pub slope: f64,
    /// At x = 0.
    pub intercept: f64,
    /// The chance of as many rising or falling pairs without a trend (Mann 1945, Kendall 1975).
    pub p: f64,
}

impl Trend {
    /// The line at a place.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The trend of points (x, y); `None` of fewer than three, or of such that have no two places.
/// Of more than 2000 every second, third and so on is looked at.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let by = points.len().div_ceil(POINTS_MAX).max(1);
    let points: Vec<(f64, f64)> = points.iter().copied().step_by(by).collect();
    if points.len() < 3 {
        return None;
    }
    let pairs = points.iter().enumerate().flat_map(|(at, first)| {
        points.iter().skip(at + 1).map(move |second| (second.0 - first.0, second.1 - first.1))
    });
    let apart = pairs.filter(|(x, _)| *x != 0.0);
    let slopes: Vec<f64> = apart.map(|(x, y)| y / x).collect();
    let score: f64 = slopes.iter().map(|slope| slope.partial_cmp(&0.0)).map(sign).sum();
    let slope = Sample::new(slopes)?.median();
    let rest = Sample::new(points.iter().map(|(x, y)| y - slope * x))?;
    let deviation = variance(&points).sqrt();
    // One pair more or less is no evidence: the correction for continuity.
    let z = (score.abs() - 1.0).max(0.0) / deviation;
    let p = if deviation > 0.0 { both_tails(z) } else { 1.0 };
    Some(Trend { slope, intercept: rest.median(), p })
}

/// A series that rises or falls bit by bit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Drift {
    /// From the first value to the last, as a share of the median.
    pub share: f64,
    /// The chance of as much without a drift.
    #[serde(rename = "chance")]
    pub p: f64,
}

/// The drift of a series of positive values in the order of time that is worth a word: beyond 2 %,
/// and not by chance.
pub fn drift(series: &[f64]) -> Option<Drift> {
    if series.len() < VALUES_MIN {
        return None;
    }
    let median = Sample::new(series.iter().copied())?.median();
    let points: Vec<(f64, f64)> =
        series.iter().enumerate().map(|(at, value)| (real_usize(at), *value)).collect();
    let found = trend(&points)?;
    let share = found.slope * real_usize(series.len() - 1) / median;
    let counts = found.p < P_MAX && share.abs() > CHANGE_LEAST;
    counts.then_some(Drift { share, p: found.p })
}

fn sign(order: Option<core::cmp::Ordering>) -> f64 {
    match order {
        Some(core::cmp::Ordering::Greater) => 1.0,
        Some(core::cmp::Ordering::Less) => -1.0,
        _ => 0.0,
    }
}

/// Of the score, with groups of equal y.
fn variance(points: &[(f64, f64)]) -> f64 {
    let of = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let mut values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    values.sort_by(f64::total_cmp);
    let ties: f64 = values
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|group| of(real_usize(group.len())))
        .sum();
    of(real_usize(points.len())) - ties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw as _;
    use units::Random;

    #[test]
    fn wild_points_do_not_turn_the_line() {
        let mut points: Vec<(f64, f64)> =
            (0..40).map(|x| (f64::from(x), 3.0 - 0.5 * f64::from(x))).collect();
        for point in points.iter_mut().step_by(7) {
            point.1 += 1000.0;
        }
        let found = trend(&points).unwrap();
        assert!((found.slope + 0.5).abs() < 0.05 && found.p < 1e-4, "{found:?}");
        assert!((found.at(10.0) + 2.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn noise_has_a_trend_as_often_as_its_chance_says() {
        let mut random = Random::new(31);
        let mut draw = || (0..30).map(|x| (f64::from(x), random.share())).collect::<Vec<_>>();
        let found = (0..1000).filter(|_| trend(&draw()).unwrap().p < 0.05).count();
        assert!((25..=75).contains(&found), "{found} of 1000");
    }

    #[test]
    fn a_drift_is_large_enough_and_not_by_chance() {
        let mut random = Random::new(32);
        let mut series = |rise: f64| -> Vec<f64> {
            (0..60).map(|at| 100.0 + rise * f64::from(at) / 59.0 + random.share()).collect()
        };
        let found = drift(&series(5.0)).unwrap();
        assert!((found.share - 0.05).abs() < 0.01, "{found:?}");
        assert!(drift(&series(-5.0)).unwrap().share < 0.0);
        assert_eq!(drift(&series(1.5)), None, "1.5 % is of no interest");
        assert_eq!((drift(&series(5.0)[..9]), drift(&[])), (None, None));
        assert!((0..50).all(|_| drift(&series(0.0)).is_none()));
    }

    #[test]
    fn the_score_is_that_of_the_definition() {
        // S = 8 of 10 pairs, variance 5 x 4 x 15 / 18.
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip([1.0, 2.0, 4.0, 3.0, 5.0]).collect();
        let z = 7.0 / (5.0 * 4.0 * 15.0 / 18.0_f64).sqrt();
        assert!((trend(&points).unwrap().p - both_tails(z)).abs() < 1e-12);
        assert!(trend(&points[..2]).is_none() && trend(&[(1.0, 2.0); 9]).is_none());
    }
}
