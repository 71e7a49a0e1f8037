//! Values without their order: the middle, the width, and what lies far outside.

use units::number::{floor, real_usize};

/// By this the median absolute deviation of normal values is their standard deviation.
const MAD_SCALE: f64 = 1.4826;
/// By this the mean absolute deviation is.
const MEAN_DEVIATION_SCALE: f64 = 1.2533;
/// Deviations beyond which a value is an outlier.
const OUTLIER: f64 = 10.0;

/// At least one value, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    ascending: Vec<f64>,
}

impl Sample {
    /// `None` of no values, or where one is not finite.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut ascending: Vec<f64> = values.into_iter().collect();
        let is_good = !ascending.is_empty() && ascending.iter().all(|value| value.is_finite());
        ascending.sort_by(f64::total_cmp);
        is_good.then_some(Self { ascending })
    }

    /// All of them, the smallest first.
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.ascending.len()
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.at(0)
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.at(self.count() - 1)
    }

    /// Mean of the values.
    pub fn mean(&self) -> f64 {
        self.ascending.iter().sum::<f64>() / real_usize(self.count())
    }

    /// Root of the mean square distance from the mean, with one value fewer; `None` of one value.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.ascending.iter().map(|value| (value - mean).powi(2)).sum();
        (self.count() > 1).then(|| (squares / real_usize(self.count() - 1)).sqrt())
    }

    /// The middle one, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        f64::midpoint(self.at((self.count() - 1) / 2), self.at(self.count() / 2))
    }

    /// The value that `share` of them, from 0 to 1, do not exceed: on a straight line between
    /// neighbours (type 7 of Hyndman and Fan 1996).
    pub fn quantile(&self, share: f64) -> f64 {
        let place = share.clamp(0.0, 1.0) * real_usize(self.count() - 1);
        let below = floor(place);
        let (low, high) = (self.at(below), self.at((below + 1).min(self.count() - 1)));
        low + (high - low) * (place - real_usize(below))
    }

    /// The same, where at least ten values lie beyond it: a percentile of fewer is none.
    pub fn tail(&self, share: f64) -> Option<f64> {
        (real_usize(self.count()) * (1.0 - share) >= 10.0 - 1e-9).then(|| self.quantile(share))
    }

    /// Their width: the median absolute deviation, scaled so that it is the standard deviation of
    /// normal values. Where more than half are equal, it is the mean absolute deviation, scaled
    /// likewise: a width of 0 makes an outlier of everything else.
    pub fn deviation(&self) -> f64 {
        let median = self.median();
        let mut away: Vec<f64> =
            self.ascending.iter().map(|value| (value - median).abs()).collect();
        away.sort_by(f64::total_cmp);
        let away = Self { ascending: away };
        let scaled = away.median() * MAD_SCALE;
        if scaled > 0.0 { scaled } else { away.mean() * MEAN_DEVIATION_SCALE }
    }

    /// Largest less smallest, over the median.
    pub fn spread(&self) -> f64 {
        (self.max() - self.min()) / self.median()
    }

    /// Whether a value lies more than ten deviations from the median.
    pub fn is_outlier(&self, value: f64) -> bool {
        let deviation = self.deviation();
        deviation > 0.0 && (value - self.median()).abs() > OUTLIER * deviation
    }

    fn at(&self, place: usize) -> f64 {
        *self.ascending.get(place).expect("a sample has values, and the place is one of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.iter().copied()).unwrap()
    }

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn middles_and_quantiles_are_those_of_the_definition() {
        near(sample(&[3.0, 1.0, 2.0]).median(), 2.0);
        near(sample(&[4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        let ten = Sample::new((1..=10).map(f64::from)).unwrap();
        for (share, value) in [(0.0, 1.0), (0.25, 3.25), (0.5, 5.5), (0.9, 9.1), (1.0, 10.0)] {
            near(ten.quantile(share), value);
        }
        near(ten.mean(), 5.5);
        near(ten.standard_deviation().unwrap(), (82.5_f64 / 9.0).sqrt());
        assert_eq!(sample(&[1.0]).standard_deviation(), None);
    }

    #[test]
    fn a_percentile_needs_ten_values_beyond_it() {
        let hundred = Sample::new((0..100).map(f64::from)).unwrap();
        assert!(hundred.tail(0.9).is_some() && hundred.tail(0.91).is_none());
    }

    #[test]
    fn one_wild_value_does_not_widen_it_and_equal_ones_do_not_make_outliers() {
        let wild = sample(&[1.0, 2.0, 3.0, 4.0, 1000.0]);
        near(wild.deviation(), 1.4826);
        assert!(wild.is_outlier(1000.0) && !wild.is_outlier(4.0));
        // The deviation of most is 0; that of the mean is not.
        let flat = sample(&[5.0, 5.0, 5.0, 5.0, 5.1]);
        assert!(flat.deviation() > 0.0 && !flat.is_outlier(5.1));
        assert!(!sample(&[5.0, 5.0]).is_outlier(6.0));
    }

    #[test]
    fn nothing_and_what_is_no_number_are_no_sample() {
        assert!(Sample::new([]).is_none() && Sample::new([1.0, f64::NAN]).is_none());
    }
}
