//! What a series says, in words.

use ::runs::{Contest, EFFECT_LEAST, Judged, Series, TwoModes};
use page::safe::printable;
use page::text::{plural, wrapped};
use statistics::Separation;

use super::value::{measure, percent};

/// Outliers, changes and factors that are named; of more, how many.
const NAMED: usize = 3;
/// A part of the time is named, if it is so much of what two modes differ by.
const PART_MIN: f64 = 0.2;
/// Where lines begin.
const INDENT: usize = 2;

/// One line for each finding, and what explains it below.
pub(super) fn findings(series: &Series, judged: &Judged, width: usize) -> String {
    let mut lines = Lines { text: String::new(), width };
    outliers(&mut lines, series, judged);
    if let Some(modes) = &judged.modes {
        two_modes(&mut lines, series, modes);
    }
    let unit = series.subject.unit;
    for change in judged.changes.iter().take(NAMED) {
        let [before, after] = [change.before, change.after].map(|value| measure(unit, value));
        let run = change.at + 1;
        lines.add(&format!("changed from {before} to {after} at run {run}"));
    }
    let others = judged.changes.len().saturating_sub(NAMED);
    if others > 0 {
        lines.add(&format!("and {others} times more: whatever it shares the machine with goes on"));
    }
    if let Some(drift) = &judged.drift {
        let way = if drift.share > 0.0 { "rises" } else { "falls" };
        let share = percent(drift.share.abs());
        lines.add(&format!("{way} by {share} from the first run to the last"));
    }
    lines.text
}

struct Lines {
    text: String,
    width: usize,
}

impl Lines {
    fn add(&mut self, line: &str) {
        self.put(INDENT, line);
    }

    /// Below a finding.
    fn add_below(&mut self, line: &str) {
        self.put(2 * INDENT, line);
    }

    fn put(&mut self, indent: usize, line: &str) {
        for line in wrapped(line, self.width.saturating_sub(indent).max(20), 2) {
            self.text.extend([&*" ".repeat(indent), &line, "\n"]);
        }
    }
}

fn outliers(lines: &mut Lines, series: &Series, judged: &Judged) {
    let values = series.values();
    let named = judged.outliers.iter().take(NAMED).filter_map(|at| {
        Some(format!("{} ({})", at + 1, measure(series.subject.unit, *values.get(*at)?)))
    });
    let named: Vec<String> = named.collect();
    let count = judged.outliers.len();
    let list = named.join(", ");
    match count {
        0 => {}
        1 => lines.add(&format!("run {list} is far from the others")),
        _ if count > NAMED => {
            lines.add(&format!("{count} runs are far from the others: {list} ..."));
        }
        _ => lines.add(&format!("runs {list} are far from the others")),
    }
    let is_slow = values.first().is_some_and(|value| *value > judged.median);
    if judged.outliers.contains(&0) && is_slow && !series.subject.unit.more_is_better() {
        lines.add_below(
            "the first run is slow: --warmup 3 leaves out what comes before caches are filled",
        );
    }
}

fn two_modes(lines: &mut Lines, series: &Series, modes: &TwoModes) {
    let (unit, TwoModes { lower, upper, .. }) = (series.subject.unit, modes);
    let [low, high] = [lower.median, upper.median].map(|value| measure(unit, value));
    let runs = plural(u64::try_from(lower.count).unwrap_or(u64::MAX), "run");
    let apart = percent(upper.median / lower.median - 1.0);
    lines.add(&format!("two modes, {apart} apart: {runs} near {low}, {} near {high}", upper.count));
    for factor in modes.factors.iter().take(NAMED) {
        let (name, sides) = (printable(&factor.name), sides(series, factor));
        lines.add_below(&format!("{name} explains {} of it: {sides}", percent(factor.share)));
    }
    if modes.factors.is_empty() {
        lines.add_below("nothing that was recorded explains them");
    }
    let differ = (upper.median - lower.median).abs();
    let parts = modes.parts.iter().filter_map(|part| {
        let more = part.upper - part.lower;
        (more > PART_MIN * differ)
            .then(|| format!("{} more for {}", measure(unit, more), part.name))
    });
    let parts: Vec<String> = parts.collect();
    if !parts.is_empty() {
        lines.add_below(&format!("the slow runs take {}", parts.join(", ")));
    }
    for sign in &modes.signs {
        let (name, sides) = (printable(&sign.name), sides(series, sign));
        lines.add_below(&format!("it goes with {name}: {sides}"));
    }
}

/// Which of its levels belongs to which mode.
fn sides(series: &Series, found: &Separation) -> String {
    let (slow, fast) = if series.subject.unit.more_is_better() {
        (&found.lower, &found.upper)
    } else {
        (&found.upper, &found.lower)
    };
    let [slow, fast] = [slow, fast].map(|level| printable(&level.to_string()));
    format!("{slow} where it is slow, {fast} where it is fast")
}

/// A command against the first, in words.
pub(super) fn effect(series: &Series, found: &Contest, width: usize) -> String {
    let Some((effect, first)) = series.effect.zip(found.series.first()) else {
        return String::new();
    };
    let mut lines = Lines { text: String::new(), width };
    let first = printable(&first.subject.name);
    let confidence = percent(effect.confidence);
    let more = |ratio: f64| percent((ratio - 1.0).abs());
    let [low, high] = if effect.ratio < 1.0 {
        [effect.high, effect.low].map(more)
    } else {
        [effect.low, effect.high].map(more)
    };
    let is_known = effect.confidence >= 0.95;
    lines.add(&match (effect.differs(), is_known) {
        (true, _) => {
            let (by, way) =
                (more(effect.ratio), if effect.ratio > 1.0 { "longer" } else { "shorter" });
            let small =
                if (effect.ratio - 1.0).abs() < EFFECT_LEAST { "; a small one" } else { "" };
            format!(
                "takes {by} {way} than {first} ({low} to {high}, confidence {confidence}){small}"
            )
        }
        (false, true) => format!("no significant difference from {first}"),
        (false, false) => format!("too few rounds to compare it with {first}: six are the least"),
    });
    lines.text
}
