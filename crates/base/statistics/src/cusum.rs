//! An alarm while values come in (Page 1954): it adds up what lies beyond half a deviation.

/// Deviations that are allowed for: the smallest lasting change looked for is twice that.
const SLACK: f64 = 0.5;
/// Deviations that must have added up. Without a change that takes 465 values in the mean, and
/// with one of a deviation 10.
const LIMIT: f64 = 5.0;

/// Which way values went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alarm {
    /// They are lower than they should be.
    Low,
    /// They are higher.
    High,
}

/// Sums of a series that should stay as it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cusum {
    mean: f64,
    deviation: f64,
    low: f64,
    high: f64,
}

impl Cusum {
    /// For values that should have this mean and this standard deviation, which is above 0.
    pub fn new(mean: f64, deviation: f64) -> Self {
        Self { mean, deviation, low: 0.0, high: 0.0 }
    }

    /// One more value; an alarm as long as too much has added up. What is no number is passed
    /// over.
    pub fn add(&mut self, value: f64) -> Option<Alarm> {
        let away = (value - self.mean) / self.deviation;
        if away.is_finite() {
            self.low = (self.low - away - SLACK).max(0.0);
            self.high = (self.high + away - SLACK).max(0.0);
        }
        match (self.low > LIMIT, self.high > LIMIT) {
            (true, _) => Some(Alarm::Low),
            (_, true) => Some(Alarm::High),
            _ => None,
        }
    }

    /// Begins anew: the alarm was seen.
    pub fn reset(&mut self) {
        (self.low, self.high) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw as _;
    use units::Random;
    use units::number::real_usize;

    /// Mean of the values until an alarm.
    fn length(shift: f64) -> f64 {
        let mut random = Random::new(41);
        let mut run = || {
            let mut sums = Cusum::new(100.0, 10.0);
            let mut next = || {
                let noise: f64 = (0..12).map(|_| random.share()).sum::<f64>() - 6.0;
                100.0 + 10.0 * (noise + shift)
            };
            (1..1_000_000).find(|_| sums.add(next()).is_some()).unwrap()
        };
        real_usize((0..400).map(|_| run()).sum::<usize>()) / 400.0
    }

    /// Montgomery, Introduction to Statistical Quality Control, table 9.3.
    #[test]
    fn an_alarm_takes_as_long_as_the_tables_say() {
        assert!((380.0..560.0).contains(&length(0.0)), "{}", length(0.0));
        assert!((9.5..11.3).contains(&length(1.0)), "{}", length(1.0));
        assert!((3.5..4.5).contains(&length(2.0)), "{}", length(2.0));
    }

    #[test]
    fn the_direction_is_told_and_a_reset_ends_it() {
        let mut sums = Cusum::new(100.0, 10.0);
        let found: Vec<_> = [80.0; 4].into_iter().map(|value| sums.add(value)).collect();
        assert_eq!(found, [None, None, None, Some(Alarm::Low)]);
        sums.reset();
        assert_eq!((sums.add(f64::NAN), sums.add(170.0)), (None, Some(Alarm::High)));
    }
}
