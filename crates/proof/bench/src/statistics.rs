//! Repeated measurements, and when not to believe them.

use anyhow::{Context, Result};

/// A larger spread than this gives no verdict.
pub(crate) const SPREAD_MAX: f64 = 0.10;

/// The same thing measured several times; at least once, and positive each time.
#[derive(Clone, Debug)]
pub(crate) struct Sample(statistics::Sample);

impl Sample {
    pub(crate) fn new(values: impl IntoIterator<Item = f64>) -> Result<Self> {
        let sample = statistics::Sample::new(values).context("nothing was measured")?;
        anyhow::ensure!(sample.min() > 0.0, "a measurement is not positive");
        Ok(Self(sample))
    }

    /// The same runs in another unit.
    pub(crate) fn map(&self, unit: impl Fn(f64) -> f64) -> Result<Self> {
        Self::new(self.0.ascending().iter().map(|&value| unit(value)))
    }

    /// The middle one, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        self.0.median()
    }

    /// Largest less smallest, over the median.
    pub(crate) fn spread(&self) -> f64 {
        self.0.spread()
    }

    /// Whether the median reaches `goal`; `None` where the values differ too much to say.
    pub(crate) fn reaches(&self, goal: f64) -> Option<bool> {
        (self.spread() <= SPREAD_MAX).then(|| self.median() >= goal)
    }

    /// Whether every single value reaches `goal`: an answer whatever the spread.
    pub(crate) fn all_reach(&self, goal: f64) -> bool {
        self.0.min() >= goal
    }

    /// Whether every single value misses `goal`.
    pub(crate) fn none_reaches(&self, goal: f64) -> bool {
        self.0.max() < goal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_and_a_spread_is_relative_to_it() {
        let check = |values: &[f64], median: f64, spread: f64| {
            let sample = Sample::new(values.iter().copied()).unwrap();
            assert!((sample.median() - median).abs() < 1e-9, "{values:?}");
            assert!((sample.spread() - spread).abs() < 1e-9, "{values:?}");
        };
        check(&[4.0], 4.0, 0.0);
        check(&[3.0, 1.0, 2.0], 2.0, 1.0);
        check(&[2.0, 4.0, 3.0, 3.0], 3.0, 2.0 / 3.0);
    }

    #[test]
    fn a_large_spread_gives_no_verdict() {
        let wide = Sample::new([1.0, 1.2]).unwrap();
        assert_eq!(
            (wide.reaches(0.5), wide.all_reach(0.5), wide.all_reach(1.1)),
            (None, true, false)
        );
        assert_eq!((wide.none_reaches(1.1), wide.none_reaches(1.3)), (false, true));
        let narrow = Sample::new([1.0, 1.05]).unwrap();
        assert_eq!((narrow.reaches(1.0), narrow.reaches(1.1)), (Some(true), Some(false)));
        assert!(Sample::new([]).is_err());
    }
}
