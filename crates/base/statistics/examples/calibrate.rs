//! Calibrates the joint rule of two modes, and measures what it and the search for changes get
//! wrong and what they find. docs/statistics.md has the output.
//!
//! `cargo run --release -p statistics --example calibrate` takes ten minutes; a number behind it
//! divides the samples.

#![expect(clippy::print_stdout, reason = "what an example finds is for its reader")]

use core::f64::consts::TAU;

use statistics::{
    Cell, Column, Draw as _, Modes, Rule, Sample, THRESHOLD_SIZES, changes, drift, modes, segments,
    separations,
};
use units::Random;

/// Samples for each size and source.
const SAMPLES: usize = 20_000;
/// Samples in which any of the rules may be wrong, of a thousand.
const WRONG_PERMILLE: usize = 10;
/// Of many values even a narrow gap is rare, and those that come in steps have nothing else.
const GAP_LEAST: f64 = 2.0;

/// Sources with a single mode, on the logarithmic scale that the rules work on.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Lognormal data; and normal ones, where they spread little.
    Normal,
    Uniform,
    /// Pareto data: a long tail towards higher values.
    Exponential,
    /// Exponential data: a long tail towards lower ones.
    LogOfExponential,
}

const SOURCES: [Source; 4] =
    [Source::Normal, Source::Uniform, Source::Exponential, Source::LogOfExponential];

fn main() {
    let divisor = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let samples = (SAMPLES / divisor).max(100);
    println!("thresholds, from {samples} samples of each of 4 sources");
    println!("{:>5} {:>8} {:>8} {:>8}  wrong at most", "n", "dip*rt n", "gap", "ashman");
    for count in THRESHOLD_SIZES {
        calibrate(count, samples);
    }
    println!("\nwrong, of 1000 new samples: normal, uniform, exponential, log of exponential");
    for count in [10, 12, 15, 25, 40, 60, 100, 250, 1000] {
        let wrong = SOURCES.map(|source| {
            share(samples, 77, |random| {
                let values: Vec<f64> = (0..count).map(|_| draw(source, random).exp()).collect();
                modes(&values).is_some_and(|modes| !modes.rules.is_empty())
            })
        });
        println!(
            "{count:>5} {:>6.1} {:>6.1} {:>6.1} {:>6.1}",
            wrong[0], wrong[1], wrong[2], wrong[3]
        );
    }
    println!("\nfound, of 1000 samples with two normal modes: dip, gap, ashman, any");
    let settings = [
        (10, 0.5, 10.0),
        (20, 0.5, 10.0),
        (30, 0.5, 4.0),
        (30, 0.2, 10.0),
        (30, 0.5, 10.0),
        (100, 0.5, 4.0),
        (100, 0.1, 10.0),
        (100, 0.2, 4.0),
        (300, 0.2, 4.0),
    ];
    for (count, minority, sigmas) in settings {
        let found = power(count, minority, sigmas, samples / 10);
        println!("{count:>5} {minority} {sigmas:>4} sigma {found:?}");
    }
    benchmarks(samples);
    println!(
        "\nchanges of 60 and 60 values, of 1000: step (deviations), ED-PELT alone, judged, in place"
    );
    for (sigmas, spread) in
        [(0.0, 0.1), (0.0, 0.02), (0.5, 0.1), (1.0, 0.1), (1.5, 0.1), (2.0, 0.02)]
    {
        let [alone, judged, right] = steps(sigmas, spread, samples / 20);
        println!("{sigmas:>5} of {spread:>5} {alone:>6.0} {judged:>6.0} {right:>6.0}");
    }
}

/// Series as a benchmark has them.
fn benchmarks(samples: usize) {
    println!(
        "\nmodes 10 % apart at 80/20, of 1000: by the spread of each, found in 20, 30, 50, 100 runs"
    );
    for spread in [0.005, 0.010, 0.015, 0.020, 0.025, 0.030] {
        let found = [20, 30, 50, 100].map(|count| apart(count, spread, samples / 10));
        println!("{:>5.1} % {found:>6.0?}", spread * 100.0);
    }
    println!("\nand of those at 1 % in 30 runs, of 1000: the factor is named, another one is");
    println!("{:.0?}", named(samples / 20));
    println!("\nnothing there, spread 5 %, of 1000: runs, modes, changes, drift, any");
    for source in SOURCES {
        for count in [10, 30, 100, 300] {
            println!("{count:>5} {:>6.1?} {source:?}", alarms(source, count, samples / 10));
        }
    }
}

/// A fifth of the values 10 % higher, each with a spread of its own.
fn two_speeds(count: usize, spread: f64, random: &mut Random) -> Vec<f64> {
    let level = |at: usize| if at * 5 < count { 1.1 } else { 1.0 };
    (0..count).map(|at| level(at) * (1.0 + spread * normal(random))).collect()
}

fn apart(count: usize, spread: f64, samples: usize) -> f64 {
    share(samples, 80, |random| {
        modes(&two_speeds(count, spread, random)).is_some_and(|modes| modes.is_bimodal())
    })
}

/// One factor that decides beside seven that do not: numbers, words, and the order.
fn named(samples: usize) -> [f64; 2] {
    let names = |random: &mut Random| -> Vec<String> {
        let values = two_speeds(30, 0.01, random);
        let Some(found) = modes(&values).filter(Modes::is_bimodal) else {
            return Vec::new();
        };
        let is_upper: Vec<bool> = values.iter().map(|value| found.is_upper(*value)).collect();
        let mut column = |name: &str, of: &dyn Fn(usize, &mut Random) -> Cell| Column {
            name: name.to_owned(),
            cells: (0..values.len()).map(|at| of(at, random)).collect(),
        };
        let word = |is: bool| Cell::Word(if is { "a" } else { "b" }.to_owned());
        let mut columns = vec![
            column("cause", &|at, _| word(at * 5 < 30)),
            column("number", &|at, _| Cell::Number(number(at * 7 % 30))),
            column("parity", &|at, _| word(at % 2 == 0)),
        ];
        columns.extend((0..5).map(|_| column("chance", &|_, random| Cell::Number(random.share()))));
        separations(&is_upper, &columns, random).into_iter().map(|found| found.name).collect()
    };
    let is_named = share(samples, 81, |random| names(random).contains(&"cause".to_owned()));
    let is_wrong = share(samples, 81, |random| names(random).iter().any(|name| name != "cause"));
    [is_named, is_wrong]
}

/// As `wirespool bench` looks at a series: a step is no drift.
fn alarms(source: Source, count: usize, samples: usize) -> [f64; 4] {
    let series = |random: &mut Random| -> Vec<f64> {
        (0..count).map(|_| (0.05 * draw(source, random)).exp()).collect()
    };
    let is_bimodal = |values: &[f64]| modes(values).is_some_and(|modes| modes.is_bimodal());
    let drifts = |values: &[f64]| changes(values).is_empty() && drift(values).is_some();
    let of = |is: &dyn Fn(&[f64]) -> bool| share(samples, 82, |random| is(&series(random)));
    let changed = |values: &[f64]| !changes(values).is_empty();
    [
        of(&is_bimodal),
        of(&changed),
        of(&drifts),
        of(&|values| is_bimodal(values) || changed(values) || drifts(values)),
    ]
}

fn draw(source: Source, random: &mut Random) -> f64 {
    match source {
        Source::Normal => normal(random),
        Source::Uniform => random.share(),
        Source::Exponential => -random.share().ln(),
        Source::LogOfExponential => (-random.share().ln()).ln(),
    }
}

/// Box and Muller 1958.
fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.share().ln()).sqrt() * (TAU * random.share()).cos()
}

/// Dip times root n, gap and Ashman's D of samples of a source.
fn statistics_of(source: Source, count: usize, samples: usize) -> Vec<[f64; 3]> {
    let mut random = Random::new(7);
    let root = number(count).sqrt();
    let one = |_| {
        let values: Vec<f64> = (0..count).map(|_| draw(source, &mut random).exp()).collect();
        let found = modes(&values).expect("enough positive values");
        [found.dip * root, found.gap, found.ashman]
    };
    (0..samples).map(one).collect()
}

/// All three rules at the same share of their own samples, the largest threshold of all sources;
/// the share is raised until all together are wrong seldom enough in every source.
fn calibrate(count: usize, samples: usize) {
    let all = SOURCES.map(|source| statistics_of(source, count, samples));
    let by_rule = [0, 1, 2].map(|rule| {
        all.each_ref().map(|of_source| {
            let values = of_source.iter().map(|found| found.get(rule).copied().unwrap_or(0.0));
            Sample::new(values.map(|value| value.min(1e9))).expect("finite samples")
        })
    });
    let (mut low, mut high) = (0.98, 1.0);
    for _ in 0..14 {
        let middle = f64::midpoint(low, high);
        if wrong(&all, &limits(&by_rule, middle)) * 1000 > WRONG_PERMILLE * samples {
            low = middle;
        } else {
            high = middle;
        }
    }
    let found = limits(&by_rule, high);
    let wrong = wrong(&all, &found) * 1000 / samples;
    let [dip, gap, ashman] = found;
    println!("{count:>5} {dip:>8.3} {gap:>8.2} {ashman:>8.2}  {wrong} of 1000");
}

fn limits(by_rule: &[[Sample; 4]; 3], share: f64) -> [f64; 3] {
    let of_rule = |sources: &[Sample; 4]| {
        sources.iter().map(|sample| sample.quantile(share)).fold(0.0, f64::max)
    };
    let [dip, gap, ashman] = by_rule.each_ref().map(of_rule);
    [dip, gap.max(GAP_LEAST), ashman]
}

/// Samples beyond any of the limits, in the worst of the sources.
fn wrong(all: &[Vec<[f64; 3]>; 4], limits: &[f64; 3]) -> usize {
    let is_wrong = |found: &&[f64; 3]| found.iter().zip(limits).any(|(value, limit)| value > limit);
    let counts = all.iter().map(|of_source| of_source.iter().filter(is_wrong).count());
    counts.max().unwrap_or(0)
}

fn power(count: usize, minority: f64, sigmas: f64, samples: usize) -> [f64; 4] {
    let upper = number(count) * minority;
    let sample = |random: &mut Random| {
        let shift = |at: usize| if number(at) + 0.5 < upper { sigmas } else { 0.0 };
        let values: Vec<f64> =
            (0..count).map(|at| ((normal(random) + shift(at)) * 0.05).exp()).collect();
        modes(&values).expect("enough positive values")
    };
    let by = |rule| share(samples, 78, |random| sample(random).rules.contains(&rule)).round();
    let any = share(samples, 78, |random| sample(random).is_bimodal()).round();
    [by(Rule::Dip), by(Rule::Gap), by(Rule::Ashman), any]
}

/// How many of 1000 series have a change: by the search alone, by the judged one, and in its place.
fn steps(sigmas: f64, spread: f64, samples: usize) -> [f64; 3] {
    let series = |random: &mut Random| -> Vec<f64> {
        let level = |at: u32| if at < 60 { 0.0 } else { sigmas };
        (0..120).map(|at| 100.0 * (1.0 + spread * (normal(random) + level(at)))).collect()
    };
    let alone = share(samples, 79, |random| !segments(&series(random), 5).is_empty());
    let judged = share(samples, 79, |random| !changes(&series(random)).is_empty());
    let right = share(
        samples,
        79,
        |random| matches!(&changes(&series(random))[..], [one] if one.at.abs_diff(60) <= 6),
    );
    [alone, judged, right]
}

/// Of 1000.
fn share(samples: usize, seed: u64, mut is: impl FnMut(&mut Random) -> bool) -> f64 {
    let mut random = Random::new(seed);
    1000.0 * number((0..samples).filter(|_| is(&mut random)).count()) / number(samples)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("few samples"))
}
