//! A comparison of targets as a page: intervals, runs in turn, and what explains them.

use ::qualify::{Comparison, Contender, EffectFound, Measure, Run};
use page::safe::printable;
use page::text::disk_rate as rate;
use page::text::{percent, plural};
use page::{
    Axis, Cell, Chart, Colour, Document, Interval, Intervals, Line, Quantity, Scale, Shape,
};
use units::number::real;

/// Targets have these colours in turn.
const COLOURS: [Colour; 4] = [Colour::First, Colour::Second, Colour::Third, Colour::Fourth];

/// A comparison as an HTML page.
pub fn comparison_html(found: &Comparison) -> String {
    let names: Vec<String> = found.targets.iter().map(|target| printable(&target.name)).collect();
    let title = format!("Comparison of {}", names.join(", "));
    let mut page = Document::new(&title);
    page.heading(&title);
    let sentences: Vec<String> =
        found.effects.iter().map(|effect| sentence(effect, &names)).collect();
    let words = if found.effects.iter().any(|effect| effect.differs) {
        "They differ."
    } else {
        "No difference was found."
    };
    page.verdict("", words, &sentences);
    if found.is_interrupted {
        page.paragraph("It was stopped before its end; only whole rounds count.");
    }
    page.section("Rates");
    page.charts(&charts(found));
    targets(&mut page, found);
    page.remark(
        "An interval contains the mean 95 times of 100. A target differs from the first when the \
         interval of the ratio leaves 1 out.",
    );
    page.finish(super::FOOT)
}

/// Its plots as drawings that stand by themselves: names of files, and SVG.
pub fn comparison_svg(found: &Comparison) -> Vec<(String, String)> {
    super::documents(charts(found).into_iter())
}

/// All plots of a comparison.
fn charts(found: &Comparison) -> Vec<Chart> {
    let mut charts = vec![rates(found)];
    charts.extend(effects(found));
    charts.extend(runs(found));
    charts
}

fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::Rate => "rate",
        Measure::Guaranteed => "guaranteed rate",
        Measure::Sweep => "rate of the sweep",
    }
}

fn name_of<'a>(effect: &EffectFound, names: &'a [String]) -> &'a str {
    let target = usize::try_from(effect.target).ok().and_then(|at| names.get(at));
    target.map_or("?", String::as_str)
}

fn sentence(effect: &EffectFound, names: &[String]) -> String {
    let first = names.first().map_or("?", String::as_str);
    let [ratio, low, high] = [effect.ratio, effect.low, effect.high].map(|of| percent(of, 1000));
    let (what, name) = (measure(effect.measure), name_of(effect, names));
    let differs = if effect.differs { "" } else { ": no significant difference" };
    format!("The {what} of {name} is {ratio} of that of {first} ({low} to {high}){differs}.")
}

/// Space beyond the values on an axis that does not begin at 0.
fn around(values: impl Iterator<Item = u64> + Clone) -> (f64, f64) {
    let low = real(values.clone().min().unwrap_or(0));
    let high = real(values.max().unwrap_or(1));
    let room = (high - low).max(high * 0.01) * 0.12;
    ((low - room).max(0.0), high + room)
}

/// An axis with a step for each of so many intervals, without numbers.
fn steps(count: usize) -> Axis {
    let count = f64::from(u32::try_from(count).unwrap_or(1).max(1));
    Axis::new("", Scale::bare((0.0, count)))
}

fn rates(found: &Comparison) -> Chart {
    let values = found
        .targets
        .iter()
        .flat_map(|target| [target.low_bytes_per_s, target.bytes_per_s, target.high_bytes_per_s]);
    let x = Scale::between(Quantity::Rate, around(values.collect::<Vec<_>>().into_iter()), 6);
    let axes = (Axis::new("rate", x), steps(found.targets.len()));
    let said = "The median of the runs, and the interval that contains their mean 95 times of 100.";
    let mut chart = Chart::new("Rate of each", said, Shape::Wide, axes);
    let interval = |target: &Contender| Interval {
        name: printable(&target.name),
        low: real(target.low_bytes_per_s),
        middle: real(target.bytes_per_s),
        high: real(target.high_bytes_per_s),
    };
    chart.add(Intervals::new(Colour::First, found.targets.iter().map(interval).collect()));
    chart
}

/// Each of the others over the first.
fn effects(found: &Comparison) -> Option<Chart> {
    if found.effects.is_empty() {
        return None;
    }
    let names: Vec<String> = found.targets.iter().map(|target| printable(&target.name)).collect();
    let ends = found.effects.iter().flat_map(|effect| [effect.low, effect.high]);
    let (low, high) = around(ends.chain([1000]).collect::<Vec<_>>().into_iter());
    let x = Scale::between(Quantity::Percent, (low / 10.0, high / 10.0), 6);
    let axes = (Axis::new("of the first", x), steps(found.effects.len()));
    let said = "Each of the others over the first; 100 % is no difference.";
    let mut chart = Chart::new("Against the first", said, Shape::Wide, axes);
    let interval = |effect: &EffectFound| Interval {
        name: format!("{}, {}", name_of(effect, &names), measure(effect.measure)),
        low: real(effect.low) / 10.0,
        middle: real(effect.ratio) / 10.0,
        high: real(effect.high) / 10.0,
    };
    chart.add(page::Rule::vertical("the first", Colour::Quiet, 100.0));
    chart.add(Intervals::new(Colour::Second, found.effects.iter().map(interval).collect()));
    Some(chart)
}

/// All runs in the order of time; `None` of reports, which have no runs.
fn runs(found: &Comparison) -> Option<Chart> {
    let all = || found.targets.iter().flat_map(|target| &target.runs);
    let end_ns = all().map(|run| run.begin_ns + run.ns).max()?;
    let largest = real(all().map(Run::rate).max()?) * 1.04;
    let x = Scale::between(Quantity::Time, (0.0, real(end_ns)), 8);
    let y = Scale::from_zero(Quantity::Rate, largest, 5);
    let axes = (Axis::new("time", x), Axis::new("rate", y));
    let said = "Each run of each target, in turn.";
    let mut chart = Chart::new("Runs", said, Shape::Wide, axes);
    for (target, colour) in found.targets.iter().zip(COLOURS.into_iter().cycle()) {
        let middle = |run: &Run| (real(run.begin_ns + run.ns / 2), real(run.rate()));
        let points = target.runs.iter().map(middle).collect();
        let name = printable(&target.name);
        chart.add(Line::new(&name, colour, points).thin().with_markers());
    }
    Some(chart)
}

fn targets(page: &mut Document, found: &Comparison) {
    let row = |target: &Contender| {
        let modes = target.modes.as_ref().map(|modes| {
            let [lower, upper] = [modes.lower_bytes_per_s, modes.upper_bytes_per_s].map(rate);
            format!("{lower} in {} of the windows, {upper} else", percent(modes.lower_share, 1000))
        });
        let factor = target.factors.first().map(|factor| {
            let (name, slower) = (printable(&factor.name), printable(&factor.slower));
            format!("{name} explains {}: slower with {slower}", percent(factor.share, 1000))
        });
        vec![
            Cell::text(printable(&target.name)),
            Cell::number(rate(target.bytes_per_s)),
            Cell::number(rate(target.low_bytes_per_s)),
            Cell::number(rate(target.high_bytes_per_s)),
            Cell::number(rate(target.guaranteed_bytes_per_s)),
            Cell::number(target.runs.len().to_string()),
            Cell::number(target.changes.len().to_string()),
            Cell::text(modes.unwrap_or_default()),
            Cell::text(factor.unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Cell>> = found.targets.iter().map(row).collect();
    let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let headings = [
        "target",
        "median",
        "from",
        "to",
        "a run guarantees",
        "runs",
        "changes",
        "modes",
        "explained by",
    ];
    page.table(&plural(count, "target"), &headings, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, bytes_per_s: u64) -> Contender {
        let run = |round: u32| Run {
            round,
            begin_ns: u64::from(round) * 1_000_000_000,
            bytes: bytes_per_s,
            ns: 1_000_000_000,
            ..Run::default()
        };
        Contender {
            name: name.to_owned(),
            bytes_per_s,
            low_bytes_per_s: bytes_per_s / 100 * 98,
            high_bytes_per_s: bytes_per_s / 100 * 102,
            guaranteed_bytes_per_s: bytes_per_s / 2,
            runs: (0..5).map(run).collect(),
            ..Contender::default()
        }
    }

    #[test]
    fn a_comparison_says_who_differs_and_shows_the_intervals() {
        let effect = EffectFound {
            target: 1,
            ratio: 900,
            low: 880,
            high: 920,
            confidence: 950,
            differs: true,
            ..EffectFound::default()
        };
        let targets = vec![target("a<b", 200_000_000), target("ext4", 180_000_000)];
        let effects = vec![effect];
        let mut found = Comparison { is_write: true, targets, effects, is_interrupted: false };
        let html = comparison_html(&found);
        for expected in [
            "They differ.",
            "The rate of ext4 is 90.0 % of that of a&lt;b (88.0 % to 92.0 %).",
            "<g class=\"c1\" data-points=\"2\">",
            "<g class=\"c2\" data-points=\"1\">",
            "data-points=\"5\"",
        ] {
            assert!(html.contains(expected), "{expected}\n{html}");
        }
        assert!(!html.contains("NaN") && !html.contains("a<b"));
        let names: Vec<String> = comparison_svg(&found).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["rate-of-each.svg", "against-the-first.svg", "runs.svg"]);
        // Of reports there are no runs.
        found.targets.iter_mut().for_each(|target| target.runs.clear());
        found.effects[0].differs = false;
        assert_eq!(comparison_svg(&found).len(), 2);
        assert!(comparison_html(&found).contains("No difference was found."));
    }
}
