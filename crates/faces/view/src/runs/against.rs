//! Runs of another day: read from a file, and what became of them.

use ::runs::{Against, Unit, Verdict};
use serde::Deserialize;

use super::value::{measure, percent};
use crate::safe::printable;
use crate::text::wrapped;

/// What a file says of a command or figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Former {
    /// What it was called.
    pub name: String,
    /// What its values are.
    pub unit: Unit,
    /// Values of the runs, in that unit.
    pub values: Vec<f64>,
}

/// Why a file has no runs.
#[derive(Debug)]
pub enum FormerError {
    /// It has another form.
    Form(serde_json::Error),
    /// Its values are in a unit that is not known.
    Unit(String),
}

impl core::fmt::Display for FormerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Form(error) => write!(f, "no runs of bench or hyperfine: {error}"),
            Self::Unit(unit) => write!(f, "runs in {unit:?}, which this program does not know"),
        }
    }
}

impl core::error::Error for FormerError {}

#[derive(Deserialize)]
struct FileJson {
    results: Vec<ResultJson>,
}

#[derive(Deserialize)]
struct ResultJson {
    command: String,
    /// hyperfine has none: its times are seconds.
    unit: Option<String>,
    times: Vec<f64>,
}

/// Reads what `--export-json` wrote, ours or hyperfine's.
pub fn parse_former(text: &str) -> Result<Vec<Former>, FormerError> {
    let file: FileJson = serde_json::from_str(text).map_err(FormerError::Form)?;
    let former = |result: ResultJson| {
        let (unit, scale) = match result.unit.as_deref() {
            None | Some("s") => (Unit::Nanoseconds, 1e9),
            Some("B/s") => (Unit::BytesPerSecond, 1.0),
            Some("1/s") => (Unit::PerSecond, 1.0),
            Some(unit) => return Err(FormerError::Unit(unit.to_owned())),
        };
        let values = result.times.into_iter().map(|value| value * scale).collect();
        Ok(Former { name: result.command, unit, values })
    };
    file.results.into_iter().map(former).collect()
}

/// What became of a command or figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Held<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What its values are.
    pub unit: Unit,
    /// The comparison of now with then.
    pub against: Against,
}

/// Lines of what became of each, those that matter first.
pub fn held(found: &[Held<'_>], file: &str, width: Option<usize>) -> String {
    let mut text = format!("\nagainst {}\n", printable(file));
    let rank = |held: &Held<'_>| match held.against.verdict {
        Verdict::Worse => 0,
        Verdict::Unclear => 1,
        Verdict::Better => 2,
        Verdict::Same => 3,
    };
    let mut found: Vec<&Held<'_>> = found.iter().collect();
    found.sort_by_key(|held| rank(held));
    for held in found {
        let lines = wrapped(&line(held), width.unwrap_or(100).saturating_sub(2).max(20), 2);
        for line in lines {
            text.extend(["  ", &line, "\n"]);
        }
    }
    text
}

fn line(held: &Held<'_>) -> String {
    let Against { before, now, ratio, low, high, verdict, .. } = held.against;
    let [before, now] = [before, now].map(|value| measure(held.unit, value));
    let [change, low, high] = [ratio, low, high].map(|ratio| percent_signed(ratio - 1.0));
    let name = printable(held.name);
    let verdict = match verdict {
        Verdict::Unclear => "too few runs to say",
        verdict => word(verdict),
    };
    format!("{name}: {before} to {now}, {change} ({low} to {high}): {verdict}")
}

fn percent_signed(share: f64) -> String {
    if share >= 0.0 { format!("+{}", percent(share)) } else { percent(share) }
}

/// As files say it.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "faster",
        Verdict::Same => "no change",
        Verdict::Worse => "slower",
        Verdict::Unclear => "unclear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hyperfine_are_read() {
        let text = r#"{"results": [{"command": "sleep 0.01", "mean": 0.0115, "stddev": 0.0001,
            "median": 0.0115, "user": 0.0005, "system": 0.0007, "min": 0.0114, "max": 0.0116,
            "times": [0.0114, 0.0116], "memory_usage_byte": [1, 2], "exit_codes": [0, 0]}]}"#;
        let found = parse_former(text).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].unit), ("sleep 0.01", Unit::Nanoseconds));
        assert!((found[0].values[1] - 11.6e6).abs() < 1e-3, "{found:?}");
        assert!(parse_former("{}").unwrap_err().to_string().contains("no runs of bench"));
        let strange = r#"{"results": [{"command": "a", "unit": "apples", "times": []}]}"#;
        assert!(parse_former(strange).unwrap_err().to_string().contains("apples"));
    }

    #[test]
    fn what_got_slower_stands_first() {
        let against = Against {
            before: 10e6,
            now: 11.2e6,
            ratio: 1.12,
            low: 1.1,
            high: 1.14,
            p: 1e-5,
            verdict: Verdict::Worse,
        };
        let same = Against { ratio: 0.99, verdict: Verdict::Same, ..against };
        let held_of = |name, against| Held { name, unit: Unit::Nanoseconds, against };
        let text = held(&[held_of("a", same), held_of("b\u{1b}", against)], "monday.json", None);
        assert_eq!(
            text,
            "\nagainst monday.json\n  \
             b\\u{1b}: 10.00 ms to 11.20 ms, +12.0 % (+10.0 % to +14.0 %): slower\n  \
             a: 10.00 ms to 11.20 ms, -1.0 % (+10.0 % to +14.0 %): no change\n"
        );
    }
}
