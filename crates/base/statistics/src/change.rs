//! Change points that are worth a word: found by ED-PELT, kept where a test of ranks and the size
//! of the change say so, too.

use units::number::real_usize;

use crate::pelt::segments;
use crate::rank::mann_whitney;
use crate::sample::Sample;

/// Values of a segment, at least.
const SEGMENT_MIN: usize = 10;
/// Chance of a change that is none.
const P_MAX: f64 = 1e-3;
/// A smaller change of the median, as a share of it, is of no interest.
pub const CHANGE_LEAST: f64 = 0.02;
/// A longer series is thinned to the medians of neighbours: the search takes a time that grows as
/// the square of the length at worst.
const LEN_MAX: usize = 2000;

/// A place at which a series changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// The first value behind it.
    pub at: usize,
    /// Median since the change before, or the beginning.
    pub before: f64,
    /// Median until the next, or the end.
    pub after: f64,
    /// The chance of ranks that differ as much without a change.
    pub p: f64,
}

impl Change {
    /// As a share of what was before.
    pub fn relative(&self) -> f64 {
        self.after / self.before - 1.0
    }

    fn counts(&self) -> bool {
        self.p < P_MAX && self.relative().abs() > CHANGE_LEAST
    }
}

/// The changes of a series of positive values in the order of time. Of a hundred series without
/// any, three have some: docs/statistics.md.
pub fn changes(series: &[f64]) -> Vec<Change> {
    let by = series.len().div_ceil(LEN_MAX).max(1);
    let thinned: Vec<f64> = series
        .chunks(by)
        .filter_map(|few| Sample::new(few.iter().copied()).map(|few| few.median()))
        .collect();
    if real_usize(thinned.len()) < real_usize(series.len()) / real_usize(by) {
        // Something in it is no number.
        return Vec::new();
    }
    let mut begins = segments(&thinned, SEGMENT_MIN);
    loop {
        let found = judged(&thinned, &begins);
        // One at a time: what is joined changes the tests of its neighbours.
        let doubtful = found.iter().filter(|change| !change.counts());
        let Some(worst) = doubtful.max_by(|a, b| a.p.total_cmp(&b.p)).map(|change| change.at)
        else {
            return found
                .into_iter()
                .map(|change| Change { at: change.at * by, ..change })
                .collect();
        };
        begins.retain(|begin| *begin != worst);
    }
}

/// What lies on both sides of each place.
fn judged(series: &[f64], begins: &[usize]) -> Vec<Change> {
    let froms = core::iter::once(0).chain(begins.iter().copied());
    let tos = begins.iter().copied().skip(1).chain(core::iter::once(series.len()));
    let sides = froms.zip(begins.iter().copied()).zip(tos);
    let changes = sides.filter_map(|((from, at), to)| {
        let (before, after) = (series.get(from..at)?, series.get(at..to)?);
        let median = |side: &[f64]| Sample::new(side.iter().copied()).map(|side| side.median());
        let p = mann_whitney(before, after);
        Some(Change { at, before: median(before)?, after: median(after)?, p })
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw as _;
    use units::Random;

    /// Of 200 series, 100 with a spread of 10 % and a step of so many deviations in the middle of
    /// 120 values: how often exactly one is found near it; and how often any.
    fn found(sigmas: f64) -> (usize, usize) {
        let mut random = Random::new(21);
        let (mut right, mut any) = (0, 0);
        for _ in 0..100 {
            let mut value = |at: u32| {
                let noise: f64 = (0..12).map(|_| random.share()).sum::<f64>() - 6.0;
                100.0 + 10.0 * (noise + if at < 60 { 0.0 } else { sigmas })
            };
            let series: Vec<f64> = (0..120).map(&mut value).collect();
            let found = changes(&series);
            any += usize::from(!found.is_empty());
            right += usize::from(matches!(&found[..], [one] if one.at.abs_diff(60) <= 8));
        }
        (right, any)
    }

    #[test]
    fn a_step_is_found_and_no_step_is_not() {
        let (right, _) = found(1.5);
        assert!(right >= 90, "{right}");
        let (_, any) = found(0.0);
        assert!(any <= 6, "{any} of 100");
    }

    #[test]
    fn a_small_change_is_left_out_and_a_long_series_is_thinned() {
        let step = |size: f64| -> Vec<f64> {
            let value = |at: u32| f64::from(at % 5) / 10.0 + if at < 3000 { 100.0 } else { size };
            (0..6000).map(value).collect()
        };
        assert!(changes(&step(101.0)).is_empty(), "1 % is of no interest");
        let found = changes(&step(90.0));
        let [change] = &found[..] else { panic!("{found:?}") };
        assert!(change.at.abs_diff(3000) <= 3 && (change.relative() + 0.1).abs() < 0.01);
        assert!(changes(&[]).is_empty() && changes(&[f64::NAN; 50]).is_empty());
    }
}
