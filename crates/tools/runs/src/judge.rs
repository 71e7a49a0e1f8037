//! What the runs of a subject say: how long they take, how much they differ, and why. Fields are
//! keys in JSON, in this order; the names of the first are hyperfine's.

use serde::{Serialize, Serializer};
use statistics::{
    CHANGE_LEAST, Cell, Change, Column, Drift, Effect, Mode, Modes, Sample, Separation, changes,
    drift, interval, modes, paired, separations,
};
use units::Random;
use units::number::real;

use crate::run::Run;

/// A smaller drift or change, as a share of the median, is of no interest.
pub const EFFECT_LEAST: f64 = CHANGE_LEAST;
/// What goes with the modes explains so much of them at least.
const SIGN_SHARE_MIN: f64 = 0.5;

/// What a series says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// Mean of the values.
    pub mean: f64,
    /// The standard deviation; `None` of one run.
    #[serde(rename = "stddev")]
    pub standard_deviation: Option<f64>,
    /// Median of the values.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The interval that holds the median with 95 %.
    #[serde(rename = "median_low")]
    pub low: f64,
    /// Upper end of the interval.
    #[serde(rename = "median_high")]
    pub high: f64,
    /// A width that outliers do not change, as a share of the median.
    pub spread: f64,
    /// Places of the runs far outside; of two modes, outside of their own. In JSON numbers from 1.
    #[serde(serialize_with = "serialize_outliers")]
    pub outliers: Vec<usize>,
    /// Two modes, and what separates them.
    pub modes: Option<TwoModes>,
    /// Places from which on it was different.
    #[serde(serialize_with = "serialize_changes")]
    pub changes: Vec<Change>,
    /// Where it changed bit by bit.
    pub drift: Option<Drift>,
}

impl Judged {
    /// Whether there is something to be said beyond the numbers.
    pub fn has_findings(&self) -> bool {
        self.modes.is_some() || !self.changes.is_empty() || self.drift.is_some()
    }

    /// The same of values that are all so many times as large: in another unit.
    #[must_use]
    pub fn scaled(&self, by: f64) -> Self {
        let change = |change: &Change| Change {
            before: change.before * by,
            after: change.after * by,
            ..*change
        };
        Self {
            mean: self.mean * by,
            standard_deviation: self.standard_deviation.map(|deviation| deviation * by),
            median: self.median * by,
            min: self.min * by,
            max: self.max * by,
            low: self.low * by,
            high: self.high * by,
            spread: self.spread,
            outliers: self.outliers.clone(),
            modes: self.modes.as_ref().map(|modes| modes.scaled(by)),
            changes: self.changes.iter().map(change).collect(),
            drift: self.drift,
        }
    }
}

fn serialize_outliers<S: Serializer>(places: &[usize], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(places.iter().map(|place| place + 1))
}

fn serialize_changes<S: Serializer>(changes: &[Change], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct AtRun {
        run: usize,
        before: f64,
        after: f64,
        chance: f64,
    }
    to.collect_seq(changes.iter().map(|&Change { at, before, after, p }| AtRun {
        run: at + 1,
        before,
        after,
        chance: p,
    }))
}

/// Two modes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TwoModes {
    /// The mode of the smaller values.
    pub lower: Mode,
    /// The mode of the larger values.
    pub upper: Mode,
    /// Where the larger ones begin.
    #[serde(skip)]
    pub cut: f64,
    /// What was given to the runs, or found beside them, and separates the modes: causes.
    pub factors: Vec<Separation>,
    /// What runs used, and separates the modes: signs of what the slower ones do.
    pub signs: Vec<Separation>,
    /// Of programs: what their time went to in either mode.
    pub parts: Vec<Part>,
}

impl TwoModes {
    fn scaled(&self, by: f64) -> Self {
        let mode = |mode: Mode| Mode { median: mode.median * by, ..mode };
        let part = |part: &Part| Part { lower: part.lower * by, upper: part.upper * by, ..*part };
        Self {
            lower: mode(self.lower),
            upper: mode(self.upper),
            cut: self.cut * by,
            parts: self.parts.iter().map(part).collect(),
            ..self.clone()
        }
    }
}

/// A part of the time of programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Part {
    /// What it went to.
    pub name: &'static str,
    /// Its median in the lower mode, in the unit of the values: nanoseconds.
    pub lower: f64,
    /// Its median in the upper mode.
    pub upper: f64,
}

/// Everything that a series says; `None` without runs, or where a value is no number. `several`
/// subjects were run in turn.
pub fn judge(runs: &[Run], several: bool, random: &mut Random) -> Option<Judged> {
    let values: Vec<f64> = runs.iter().map(|run| run.ran.value).collect();
    let sample = Sample::new(values.iter().copied())?;
    let median = sample.median();
    let interval = interval(&values, Sample::median, 0.95, random)?;
    let changes = changes(&values);
    let found = modes(&values).filter(Modes::is_bimodal);
    Some(Judged {
        median,
        low: interval.low,
        high: interval.high,
        mean: sample.mean(),
        standard_deviation: sample.standard_deviation(),
        spread: if median > 0.0 { sample.deviation() / median } else { 0.0 },
        min: sample.min(),
        max: sample.max(),
        outliers: outliers(&values, found.as_ref()),
        modes: found.map(|found| two_modes(&found, runs, several, random)),
        // A step is no slope.
        drift: if changes.is_empty() { drift(&values) } else { None },
        changes,
    })
}

/// What lies far from all others; of two modes, from those of its own.
fn outliers(values: &[f64], modes: Option<&Modes>) -> Vec<usize> {
    let is_upper = |value: f64| modes.is_some_and(|modes| modes.is_upper(value));
    let sides = [false, true]
        .map(|side| Sample::new(values.iter().copied().filter(|value| is_upper(*value) == side)));
    let [lower, upper] = &sides;
    let is_far = |value: f64| {
        let side = if is_upper(value) { upper } else { lower };
        side.as_ref().is_some_and(|side| side.is_outlier(value))
    };
    values.iter().enumerate().filter_map(|(at, value)| is_far(*value).then_some(at)).collect()
}

/// The second over the first, round by round; `None` without a round.
pub(crate) fn effect(first: &[Run], second: &[Run]) -> Option<Effect> {
    let pairs = first.iter().zip(second).map(|(a, b)| (a.ran.value, b.ran.value));
    paired(&pairs.collect::<Vec<_>>())
}

fn two_modes(found: &Modes, runs: &[Run], several: bool, random: &mut Random) -> TwoModes {
    let is_upper: Vec<bool> = runs.iter().map(|run| found.is_upper(run.ran.value)).collect();
    let factors = separations(&is_upper, &factors(runs, several), random);
    let mut signs = separations(&is_upper, &signs(runs), random);
    signs.retain(|sign| sign.share >= SIGN_SHARE_MIN);
    TwoModes {
        lower: found.lower,
        upper: found.upper,
        cut: found.cut,
        factors,
        signs,
        parts: parts(runs, &is_upper),
    }
}

/// Order, time, and the facts of the runs.
fn factors(runs: &[Run], several: bool) -> Vec<Column> {
    let column = |name: &str, of: &dyn Fn(&Run) -> Cell| Column {
        name: name.to_owned(),
        cells: runs.iter().map(of).collect(),
    };
    // With one subject there are no turns; with several, odd rounds are turns.
    let order = if several {
        column("turn in the round", &|run| Cell::Word((run.turn + 1).to_string()))
    } else {
        let parity = |run: &Run| if run.round.is_multiple_of(2) { "odd" } else { "even" };
        column("number of the run", &|run| Cell::Word(parity(run).to_owned()))
    };
    let since = column("seconds since the beginning", &|run| {
        Cell::Number((real(run.begin_ns) / 1e6).round() / 1e3)
    });
    let facts = runs.first().map_or(&[][..], |run| &run.ran.facts[..]);
    let facts = facts.iter().enumerate().filter_map(|(at, fact)| {
        let value = |run: &Run| run.ran.facts.get(at).and_then(|fact| fact.value.clone());
        // What is known of some runs only, as of long ones, goes with how long they take.
        let cells = runs.iter().map(value).collect::<Option<Vec<Cell>>>()?;
        Some(Column { name: fact.name.clone(), cells })
    });
    [order, since].into_iter().chain(facts).collect()
}

/// What programs used: it shows what the slower ones do, and not why.
fn signs(runs: &[Run]) -> Vec<Column> {
    type Of = fn(&host::Taken) -> u64;
    let signs: [(&str, Of); 6] = [
        ("pages read from a disk", |taken| taken.major_faults),
        ("pages mapped", |taken| taken.minor_faults),
        ("blocks read", |taken| taken.blocks_in),
        ("blocks written", |taken| taken.blocks_out),
        ("times it waited", |taken| taken.waits),
        ("times it lost its processor", |taken| taken.preemptions),
    ];
    let column = |(name, of): (&str, Of)| {
        let cells = runs.iter().map(|run| Some(Cell::Number(real(of(run.ran.taken.as_ref()?)))));
        Some(Column { name: name.to_owned(), cells: cells.collect::<Option<_>>()? })
    };
    signs.into_iter().filter_map(column).collect()
}

/// What the time of programs went to, in either mode.
fn parts(runs: &[Run], is_upper: &[bool]) -> Vec<Part> {
    type Of = fn(&host::Taken) -> core::time::Duration;
    let parts: [(&'static str, Of); 3] = [
        ("its own code", |taken| taken.cpu.user),
        ("the kernel", |taken| taken.cpu.system),
        ("waiting", host::Taken::waiting),
    ];
    let median = |of: Of, wanted: bool| {
        let of_mode = runs.iter().zip(is_upper).filter(|(_, upper)| **upper == wanted);
        let times = of_mode.filter_map(|(run, _)| Some(of(run.ran.taken.as_ref()?)));
        Sample::new(times.map(|time| time.as_secs_f64() * 1e9)).map(|times| times.median())
    };
    let part = |(name, of): (&'static str, Of)| {
        Some(Part { name, lower: median(of, false)?, upper: median(of, true)? })
    };
    parts.into_iter().filter_map(part).collect()
}
