//! Whether a sample has two modes, and where they part.

use schemars::JsonSchema;
use serde::Serialize;
use units::number::{floor, real_usize};

use crate::dip::dip;
use crate::sample::Sample;
use crate::thresholds::Thresholds;

/// Fewer values say nothing of modes.
const VALUES_MIN: usize = 10;
/// Values of a mode at least, and as a share of all.
const MINORITY: usize = 3;
const MINORITY_SHARE: f64 = 0.05;
/// Modes closer than this, as a ratio, are of no interest however clear they are.
const RATIO_MIN: f64 = 1.02;

/// What says that there are two modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The distance from every distribution with a single mode.
    Dip,
    /// A gap, against the width of the values on either side.
    Gap,
    /// Ashman's D of the best parting: the distance of the means against both widths.
    Ashman,
}

/// One of two modes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Mode {
    /// Number of values in the mode.
    pub count: usize,
    /// Median of the values in the mode.
    pub median: f64,
}

/// A sample, parted in two.
#[derive(Clone, PartialEq, Debug)]
pub struct Modes {
    /// The mode of the smaller values.
    pub lower: Mode,
    /// The mode of the larger values.
    pub upper: Mode,
    /// Where the larger ones begin.
    pub cut: f64,
    /// The dip statistic.
    pub dip: f64,
    /// The widest gap, in deviations.
    pub gap: f64,
    /// Ashman's D.
    pub ashman: f64,
    /// The rules that say that these are two modes: one is enough.
    pub rules: Vec<Rule>,
}

impl Modes {
    /// Whether there are two modes, and whether they differ by more than 2 %.
    pub fn is_bimodal(&self) -> bool {
        !self.rules.is_empty() && self.upper.median >= self.lower.median * RATIO_MIN
    }

    /// Which of the values belong to the upper mode.
    pub fn is_upper(&self, value: f64) -> bool {
        value >= self.cut
    }
}

/// A parting: how many lie below it, and what says so.
struct Parting {
    below: usize,
    score: f64,
}

/// Parts positive values, on a logarithmic scale, and says by which rules these are two modes. In
/// 1 of 100 samples of a single mode one of the rules is wrong: docs/statistics.md has the tables.
/// `None` of fewer than 10 values, or where one is not positive.
pub fn modes(values: &[f64]) -> Option<Modes> {
    let sample = Sample::new(values.iter().copied())?;
    if sample.count() < VALUES_MIN || sample.min() <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = sample.ascending().iter().map(|value| value.ln()).collect();
    let minority = MINORITY.max(floor((MINORITY_SHARE * real_usize(logs.len())).ceil()));
    let (gap, ashman) = (widest_gap(&logs, minority), best_parting(&logs, minority));
    let dip = dip(&logs);
    let limits = Thresholds::of(logs.len());
    let rules = [
        (Rule::Dip, dip > limits.dip),
        (Rule::Gap, gap.score > limits.gap),
        (Rule::Ashman, ashman.score > limits.ashman),
    ];
    let rules: Vec<Rule> =
        rules.into_iter().filter_map(|(rule, says)| says.then_some(rule)).collect();
    let parting = if rules.contains(&Rule::Gap) { &gap } else { &ashman };
    let (lower, upper) = sample.ascending().split_at(parting.below);
    let mode = |values: &[f64]| {
        let values = Sample::new(values.iter().copied()).expect("a minority lies on either side");
        Mode { count: values.count(), median: values.median() }
    };
    let cut = *upper.first().expect("a minority lies above");
    let (lower, upper) = (mode(lower), mode(upper));
    Some(Modes { lower, upper, cut, dip, gap: gap.score, ashman: ashman.score, rules })
}

/// The widest gap with a minority on either side, in deviations of the wider side.
fn widest_gap(ascending: &[f64], minority: usize) -> Parting {
    let gaps = ascending.windows(2).zip(1..).filter_map(|(pair, below)| match pair {
        [first, second] => Some((second - first, below)),
        _ => None,
    });
    let has_sides = |below: &usize| *below >= minority && ascending.len() - below >= minority;
    let widest = gaps
        .filter(|(_, below)| has_sides(below))
        .max_by(|first, second| first.0.total_cmp(&second.0));
    let (width, below) = widest.unwrap_or((0.0, ascending.len() / 2));
    let (low, high) = ascending.split_at(below);
    let deviation = |side: &[f64]| Sample::new(side.iter().copied()).map_or(0.0, |s| s.deviation());
    Parting { below, score: over(width, deviation(low).max(deviation(high))) }
}

/// The parting that leaves the least variance within both sides, and its Ashman's D.
fn best_parting(ascending: &[f64], minority: usize) -> Parting {
    let count = ascending.len();
    // Around the median, so that squares do not cancel.
    let middle = ascending.get(count / 2).copied().unwrap_or(0.0);
    let sums = |values: &mut dyn Iterator<Item = f64>| -> (f64, f64) {
        values.fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value))
    };
    let all = sums(&mut ascending.iter().map(|value| value - middle));
    let mut below = (0.0, 0.0);
    let mut best: Option<(f64, Parting)> = None;
    for (value, taken) in ascending.iter().map(|value| value - middle).zip(1..) {
        below = (below.0 + value, below.1 + value * value);
        if taken < minority || count - taken < minority {
            continue;
        }
        let low = within(below, taken);
        let high = within((all.0 - below.0, all.1 - below.1), count - taken);
        let inside = low.1 + high.1;
        if best.as_ref().is_none_or(|(least, _)| inside < *least) {
            let width = low.1 / real_usize(taken - 1) + high.1 / real_usize(count - taken - 1);
            let score = over(2.0_f64.sqrt() * (high.0 - low.0), width.sqrt());
            best = Some((inside, Parting { below: taken, score }));
        }
    }
    best.map_or(Parting { below: count / 2, score: 0.0 }, |(_, parting)| parting)
}

/// Mean, and sum of squares around it.
fn within((sum, squares): (f64, f64), count: usize) -> (f64, f64) {
    let mean = sum / real_usize(count);
    (mean, (squares - sum * mean).max(0.0))
}

/// A distance in widths; of no width all there is, of no distance none.
fn over(distance: f64, width: f64) -> f64 {
    match distance > 0.0 {
        true if width > 1e-12 * distance => distance / width,
        true => f64::INFINITY,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests;
