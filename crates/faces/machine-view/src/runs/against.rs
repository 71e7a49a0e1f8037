//! Runs of another day, and what became of them.

use ::runs::{Against, Contest, Former, Unit, Verdict, against};
use page::safe::printable;
use page::text::wrapped;
use units::Random;

use super::value::{measure, percent};

/// What became of a command or figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Held<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What its values are.
    pub unit: Unit,
    /// Now against then.
    pub against: Against,
}

impl<'a> Held<'a> {
    /// Each of what was run that was run then, too, within a tolerance: a share such as 0.05.
    pub fn all(
        found: &'a Contest,
        formers: &[Former],
        tolerance: f64,
        random: &mut Random,
    ) -> Vec<Self> {
        let held = found.series.iter().filter_map(|series| {
            let subject = &series.subject;
            let former = formers.iter().find(|former| former.is_of(subject))?;
            let (unit, now) = (subject.unit, series.values());
            let against = against(&former.values, &now, (unit, tolerance), random)?;
            Some(Self { name: &subject.name, unit, against })
        });
        held.collect()
    }
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
        verdict => verdict.name(),
    };
    format!("{name}: {before} to {now}, {change} ({low} to {high}): {verdict}")
}

fn percent_signed(share: f64) -> String {
    if share >= 0.0 { format!("+{}", percent(share)) } else { percent(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
