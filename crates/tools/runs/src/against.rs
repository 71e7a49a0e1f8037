//! A series against one of another day.

use serde::{Serialize, Serializer};
use statistics::{Sample, interval, mann_whitney};
use units::Random;

use crate::run::Unit;

/// The chance of ranks that differ as much without a difference, at most.
const P_MAX: f64 = 0.01;
/// Each end of the interval of a ratio is one of two medians: both are held with 97.5 %, so that
/// their quotient is with 95 % at least (Bonferroni).
const CONFIDENCE_EACH: f64 = 0.975;

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Better beyond the tolerance, and not by chance.
    Better,
    /// Within the tolerance.
    Same,
    /// Worse beyond the tolerance, and not by chance.
    Worse,
    /// Beyond the tolerance, and by so few runs, or such different ones, that it may be chance.
    Unclear,
}

impl Verdict {
    /// The verdict as files say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "faster",
            Self::Same => "no change",
            Self::Worse => "slower",
            Self::Unclear => "unclear",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A series against a former one. Fields are keys in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Against {
    /// Median of the former.
    pub before: f64,
    /// Median now.
    pub now: f64,
    /// Now over before.
    pub ratio: f64,
    /// The interval that holds the ratio with 95 %.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The chance of ranks that differ as much without a difference.
    #[serde(rename = "chance")]
    pub p: f64,
    /// What to make of it.
    pub verdict: Verdict,
}

/// Holds `now` against `before`. A difference counts when the medians differ by more than
/// `tolerance`, a share such as 0.05, the interval of their ratio leaves out 1, and ranks differ
/// with a chance below 0.01. `None` where one of them has no values, or such that are not positive.
pub fn against(
    before: &[f64],
    now: &[f64],
    (unit, tolerance): (Unit, f64),
    random: &mut Random,
) -> Option<Against> {
    let mut of = |values: &[f64]| {
        let found = interval(values, Sample::median, CONFIDENCE_EACH, random)?;
        (found.low > 0.0).then_some(found)
    };
    let (old, new) = (of(before)?, of(now)?);
    let (ratio, low, high) = (new.estimate / old.estimate, new.low / old.high, new.high / old.low);
    let p = mann_whitney(before, now);
    let differs = (ratio - 1.0).abs() > tolerance;
    let is_larger = ratio > 1.0;
    let verdict = if !differs {
        Verdict::Same
    } else if least_p(before.len(), now.len()) >= P_MAX || p >= P_MAX || (low <= 1.0 && high >= 1.0)
    {
        // It may be chance, and nothing rules out that it is not.
        Verdict::Unclear
    } else if is_larger == unit.more_is_better() {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    Some(Against { before: old.estimate, now: new.estimate, ratio, low, high, p, verdict })
}

/// The smallest chance that samples of these sizes can have: all of one above all of the other.
fn least_p(before: usize, now: usize) -> f64 {
    let of = |value: f64, count: usize| vec![value; count];
    let steps = |from: f64, count: usize| -> Vec<f64> {
        of(from, count).iter().zip(0_u32..).map(|(from, at)| from + f64::from(at)).collect()
    };
    mann_whitney(&steps(0.0, before), &steps(1e9, now))
}

#[cfg(test)]
mod tests {
    use statistics::Draw as _;

    use super::*;

    fn series(count: usize, middle: f64, random: &mut Random) -> Vec<f64> {
        let mut noise = || (0..12).map(|_| random.share()).sum::<f64>() - 6.0;
        (0..count).map(|_| middle * (1.0 + 0.02 * noise())).collect()
    }

    fn verdicts(ratio: f64, count: usize, unit: Unit) -> [usize; 4] {
        let mut random = Random::new(61);
        let mut counts = [0; 4];
        for _ in 0..200 {
            let before = series(count, 10e6, &mut random);
            let now = series(count, 10e6 * ratio, &mut random);
            let found = against(&before, &now, (unit, 0.05), &mut random).unwrap();
            let place = match found.verdict {
                Verdict::Better => 0,
                Verdict::Same => 1,
                Verdict::Worse => 2,
                Verdict::Unclear => 3,
            };
            counts[place] += 1;
        }
        counts
    }

    #[test]
    fn what_got_slower_alarms_and_what_did_not_does_not() {
        let [_, _, worse, _] = verdicts(1.10, 10, Unit::Nanoseconds);
        assert!(worse >= 190, "{worse} of 200");
        let [better, same, worse, unclear] = verdicts(1.0, 10, Unit::Nanoseconds);
        assert_eq!((better, same, worse, unclear), (0, 200, 0, 0));
        let [_, same, ..] = verdicts(1.03, 30, Unit::Nanoseconds);
        assert!(same >= 198, "3 % is within the tolerance: {same}");
        let [better, ..] = verdicts(1.10, 10, Unit::BytesPerSecond);
        assert!(better >= 190, "a rate: {better}");
    }

    #[test]
    fn few_runs_prove_nothing_however_far_apart() {
        let mut random = Random::new(1);
        let found = against(
            &[10.0, 11.0, 12.0],
            &[20.0, 21.0, 22.0],
            (Unit::Nanoseconds, 0.05),
            &mut random,
        );
        assert_eq!(found.unwrap().verdict, Verdict::Unclear);
        assert!(against(&[], &[1.0], (Unit::Nanoseconds, 0.05), &mut random).is_none());
        assert!(against(&[0.0; 9], &[1.0; 9], (Unit::Nanoseconds, 0.05), &mut random).is_none());
    }
}
