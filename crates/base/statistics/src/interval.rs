//! How sure a number of a series is, although its neighbours resemble each other.

use units::number::{floor, real_usize};

use crate::random::Draw as _;
use crate::sample::Sample;
use units::Random;

/// Series drawn anew.
const ROUNDS: usize = 1000;

/// A value, and where it lies with some confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// What the series itself gives.
    pub estimate: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// What `of` makes of a series, and the interval that holds it with `confidence`, such as 0.95:
/// a bootstrap of blocks as long as the root of the length, laid anywhere, because windows of one
/// run follow each other. `None` of an empty series, or where `of` gives no finite number.
pub fn interval(
    series: &[f64],
    of: impl Fn(&Sample) -> f64,
    confidence: f64,
    random: &mut Random,
) -> Option<Interval> {
    let estimate = of(&Sample::new(series.iter().copied())?);
    let block = floor(real_usize(series.len()).sqrt()).max(1);
    let begins = series.len() - block + 1;
    let mut draw = || {
        let blocks = core::iter::repeat_with(|| random.place(begins));
        let values = blocks.flat_map(|begin| series.iter().skip(begin).take(block).copied());
        Sample::new(values.take(series.len())).map(|drawn| of(&drawn))
    };
    let drawn: Vec<f64> = (0..ROUNDS).filter_map(|_| draw()).collect();
    let drawn = Sample::new(drawn)?;
    let beyond = (1.0 - confidence) / 2.0;
    Some(Interval {
        low: drawn.quantile(beyond).min(estimate),
        estimate,
        high: drawn.quantile(1.0 - beyond).max(estimate),
    })
}

/// Correlation of a series with itself one step later; 0 where there is none to be had.
pub fn lag_one(series: &[f64]) -> f64 {
    let mean = series.iter().sum::<f64>() / real_usize(series.len()).max(1.0);
    let whole: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = series.iter().zip(series.iter().skip(1));
    let shared: f64 = pairs.map(|(first, second)| (first - mean) * (second - mean)).sum();
    if whole > 0.0 { shared / whole } else { 0.0 }
}

/// As many independent values say as much as a series of which neighbours resemble each other.
pub fn effective_count(series: &[f64]) -> f64 {
    let lag = lag_one(series).clamp(0.0, 0.999);
    real_usize(series.len()) * (1.0 - lag) / (1.0 + lag)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of which each has `memory` of the one before.
    fn series(count: usize, memory: f64, random: &mut Random) -> Vec<f64> {
        let mut value = 0.0;
        let mut next = || {
            let noise: f64 = (0..12).map(|_| random.share()).sum::<f64>() - 6.0;
            value = memory * value + (1.0 - memory * memory).sqrt() * noise;
            value
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn an_interval_holds_the_truth_about_as_often_as_it_says() {
        for (memory, least) in [(0.0, 88), (0.5, 80)] {
            let mut random = Random::new(3);
            let is_held = |_: &i32| {
                let values = series(200, memory, &mut random);
                let found = interval(&values, Sample::mean, 0.95, &mut random).unwrap();
                found.low <= 0.0 && 0.0 <= found.high
            };
            let held = (0..100).filter(is_held).count();
            assert!(held >= least, "{held} of 100 at {memory}");
        }
    }

    #[test]
    fn what_repeats_its_neighbour_counts_less() {
        let mut random = Random::new(4);
        let (free, bound) = (series(2000, 0.0, &mut random), series(2000, 0.8, &mut random));
        assert!(lag_one(&free).abs() < 0.06 && (lag_one(&bound) - 0.8).abs() < 0.06);
        assert!((effective_count(&bound) / 2000.0 - 0.2 / 1.8).abs() < 0.04);
        assert_eq!((lag_one(&[]), lag_one(&[1.0, 1.0])), (0.0, 0.0));
    }
}
