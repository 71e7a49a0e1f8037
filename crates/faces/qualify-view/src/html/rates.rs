//! Rates over place, time, pool and extents, and where writes lay when.

use ::qualify::{Extents, Fill, PartResult, Qualification, Sweep, Window};
use page::text::disk_rate as rate;
use page::text::nanos;
use page::{Axis, Chart, Colour, Dots, Line, Quantity, Rule, Scale, Shape};
use units::ByteSize;
use units::number::real;

use super::super::text::range;

/// A window that reaches over more of the surface than this says nothing of a place.
const PLACE_SHARE: u64 = 16;
/// Of a run as much of a pool is believed.
const POOLS_MIN: u64 = 20;

const FILL: &str = "first to last";
const PASS_1: &str = "pass 1";
const PASS_2: &str = "pass 2";

/// A run that wrote, with its name and colour on the page.
#[derive(Clone, Copy)]
struct Run<'a> {
    name: &'static str,
    colour: Colour,
    fill: &'a Fill,
}

/// All plots of rates, in the order of the page.
pub(super) fn charts(found: &Qualification) -> Vec<Chart> {
    let runs = runs(found);
    let sweep = found.parts.iter().find_map(|part| match part {
        PartResult::Sweep(sweep) if !sweep.steps.is_empty() => Some(sweep),
        _ => None,
    });
    if runs.is_empty() && sweep.is_none() {
        return Vec::new();
    }
    let needed = found.verdict.as_ref().and_then(|verdict| verdict.asked);
    let needed = needed.map(|asked| asked.needed_bytes_per_s);
    let size = found.target.size_bytes;
    let mut charts = vec![over_place(size, sweep, &runs, needed)];
    if !runs.is_empty() {
        charts.push(over_time(&distinct(&runs, &[PASS_1]), needed));
        let runs = distinct(&runs, &[PASS_1, PASS_2]);
        charts.extend(by_pool(&runs, needed));
        charts.extend(longest(&runs));
        let shown = runs.iter().filter(|run| !run.fill.samples.is_empty());
        charts.extend(shown.map(|run| places(run, size)));
    }
    charts
}

fn runs(found: &Qualification) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    for part in &found.parts {
        match part {
            PartResult::Fill(fill) => {
                runs.push(Run { name: FILL, colour: Colour::First, fill });
            }
            PartResult::Ring(fill) => {
                runs.push(Run { name: "zones levelled", colour: Colour::Second, fill });
            }
            PartResult::Passes(passes) => {
                let (first, second) = (&passes.first, &passes.second);
                runs.push(Run { name: PASS_1, colour: Colour::Third, fill: first });
                runs.push(Run { name: PASS_2, colour: Colour::Fourth, fill: second });
            }
            _ => {}
        }
    }
    runs.retain(|run| !run.fill.windows.is_empty());
    runs
}

/// Without those named, where a fill says the same.
fn distinct<'a>(runs: &[Run<'a>], repeated: &[&str]) -> Vec<Run<'a>> {
    let has_fill = runs.iter().any(|run| run.name == FILL);
    let says_more = |run: &&Run<'_>| !has_fill || !repeated.contains(&run.name);
    runs.iter().filter(says_more).copied().collect()
}

/// An axis of rates that reaches above all of them, and above what is needed.
fn rate_axis(rates: impl Iterator<Item = u64>, needed: Option<u64>) -> Axis {
    let largest = rates.chain(needed).max().unwrap_or(0);
    Axis::new("rate", Scale::from_zero(Quantity::Rate, real(largest) * 1.04, 5))
}

fn add_needed(chart: &mut Chart, needed: Option<u64>) {
    if let Some(needed) = needed {
        let name = format!("needed: {}", rate(needed));
        chart.add(Rule::horizontal(&name, Colour::Bound, real(needed)));
    }
}

/// Rate at each place of the surface: the zones of a disk.
fn over_place(size: u64, sweep: Option<&Sweep>, runs: &[Run<'_>], needed: Option<u64>) -> Chart {
    let is_place =
        |window: &Window| (window.offset_high - window.offset_low) * PLACE_SHARE <= size.max(1);
    let of_runs: Vec<(&Run<'_>, Vec<(u64, u64)>)> = runs
        .iter()
        .map(|run| {
            let windows = run.fill.windows.iter().zip(run.fill.rates());
            let places = windows.filter(|(window, _)| is_place(window)).map(|(window, rate)| {
                (window.offset_low + (window.offset_high - window.offset_low) / 2, rate)
            });
            let mut places: Vec<(u64, u64)> = places.collect();
            places.sort_unstable();
            (run, places)
        })
        .filter(|(_, places)| !places.is_empty())
        .collect();
    let steps = sweep.map_or(&[][..], |sweep| &sweep.steps);
    let rates = || {
        let of_runs = of_runs.iter().flat_map(|(_, places)| places.iter().map(|(_, rate)| *rate));
        steps.iter().map(::qualify::SweepStep::rate).chain(of_runs)
    };
    let x = Scale::between(Quantity::Place, (0.0, real(size)), 8);
    let axes = (Axis::new("place on the surface", x), rate_axis(rates(), needed));
    let said = format!(
        "{}. Disks with platters are fastest outside, where the first bytes lie.",
        range(rates())
    );
    let mut chart = Chart::new("Rate over place", &said, Shape::Wide, axes);
    for (run, places) in of_runs {
        let points = places.iter().map(|(place, rate)| (real(*place), real(*rate))).collect();
        chart.add(Line::new(run.name, run.colour, points).thin());
    }
    if let Some(sweep) = sweep {
        let name = if sweep.is_write { "sweep, written" } else { "sweep, read" };
        let steps = sweep.steps.iter();
        let points =
            steps.map(|step| (real(step.offset + step.bytes / 2), real(step.rate()))).collect();
        chart.add(Line::new(name, Colour::Quiet, points).dashed().with_markers());
    }
    add_needed(&mut chart, needed);
    chart
}

fn longest_ns(runs: &[Run<'_>]) -> f64 {
    real(runs.iter().map(|run| run.fill.ns()).max().unwrap_or(0))
}

/// Rate as the time goes by: of a ring, what a recorder sees.
fn over_time(runs: &[Run<'_>], needed: Option<u64>) -> Chart {
    let x = Scale::between(Quantity::Time, (0.0, longest_ns(runs)), 8);
    let rates = runs.iter().flat_map(|run| run.fill.rates());
    let axes = (Axis::new("time", x), rate_axis(rates, needed));
    let of_runs: Vec<String> = runs
        .iter()
        .map(|run| {
            let rates: Vec<u64> = run.fill.rates().collect();
            format!("{}: {} in {}", run.name, range(rates.into_iter()), nanos(run.fill.ns()))
        })
        .collect();
    let said = format!("{}.", of_runs.join("; "));
    let mut chart = Chart::new("Rate over time", &said, Shape::Wide, axes);
    for run in runs {
        let windows = run.fill.windows.iter().zip(run.fill.rates());
        let begins = core::iter::once(0).chain(run.fill.windows.iter().map(|window| window.end_ns));
        let points = windows.zip(begins).map(|((window, rate), begin_ns)| {
            (real(begin_ns + window.end_ns.saturating_sub(begin_ns) / 2), real(rate))
        });
        let line = Line::new(run.name, run.colour, points.collect());
        chart.add(if run.name == PASS_2 { line.thin() } else { line });
    }
    add_needed(&mut chart, needed);
    chart
}

/// What a pool makes of each run; `None` where all were too short for any.
fn by_pool(runs: &[Run<'_>], needed: Option<u64>) -> Option<Chart> {
    let believed = |run: &Run<'_>| {
        let most = run.fill.bytes() / POOLS_MIN;
        let points = run.fill.curve.iter().filter(move |point| point.pool_bytes <= most);
        points.map(|point| (point.pool_bytes, point.bytes_per_s)).collect::<Vec<_>>()
    };
    let curves: Vec<(&Run<'_>, Vec<(u64, u64)>)> =
        runs.iter().map(|run| (run, believed(run))).filter(|(_, curve)| curve.len() > 1).collect();
    let pools = || curves.iter().flat_map(|(_, curve)| curve.iter().map(|(pool, _)| *pool));
    let (least, most) = pools().min().zip(pools().max())?;
    let rates = curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, rate)| *rate));
    let x = Scale::doublings(Quantity::Memory, (real(least), real(most)), 6);
    let axes = (Axis::new("pool", x), rate_axis(rates, needed));
    let said = "The highest constant arrival that never overflows a pool of this size.";
    let mut chart = Chart::new("Guaranteed rate by pool", said, Shape::Half, axes);
    for (run, curve) in &curves {
        let points = curve.iter().map(|(pool, rate)| (real(*pool), real(*rate))).collect();
        chart.add(Line::new(run.name, run.colour, points).with_markers());
    }
    add_needed(&mut chart, needed);
    Some(chart)
}

/// The longest write of each window: when the disk stood still.
fn longest(runs: &[Run<'_>]) -> Option<Chart> {
    let latencies = || {
        let windows = runs.iter().flat_map(|run| &run.fill.windows);
        windows.map(|window| window.latency_ns_max).filter(|ns| *ns > 0)
    };
    let (least, most) = latencies().min().zip(latencies().max())?;
    let x = Scale::between(Quantity::Time, (0.0, longest_ns(runs)), 4);
    let y = Scale::decades(Quantity::Time, (real(least), real(most)));
    let said = format!("The longest write of each stretch; {} at most.", nanos(most));
    let axes = (Axis::new("time", x), Axis::new("longest write", y));
    let mut chart = Chart::new("Stalls", &said, Shape::Half, axes);
    for run in runs {
        let windows = run.fill.windows.iter();
        let points = windows.map(|window| (real(window.end_ns), real(window.latency_ns_max)));
        chart.add(Dots::new(run.name, run.colour, points.collect()));
    }
    Some(chart)
}

/// Where writes lay when: the order in which the surface is written.
fn places(run: &Run<'_>, size: u64) -> Chart {
    let x = Scale::between(Quantity::Time, (0.0, real(run.fill.ns())), 4);
    let y = Scale::between(Quantity::Place, (0.0, real(size)), 4);
    let said = format!(
        "Where writes lay when, {}: a dot is one of {} in {}.",
        run.name,
        ByteSize(run.fill.block_bytes),
        nanos(run.fill.ns())
    );
    let axes = (Axis::new("time", x), Axis::new("place", y));
    let title = format!("Offset over time, {}", run.name);
    let mut chart = Chart::new(&title, &said, Shape::Half, axes);
    let samples = run.fill.samples.iter();
    let points = samples.map(|sample| (real(sample.end_ns), real(sample.offset))).collect();
    chart.add(Dots::new("", run.colour, points));
    chart
}

/// Throughput by the bytes between two jumps, what was fitted to it, and the knee.
pub(super) fn knee(extents: &Extents) -> Chart {
    let sizes = || extents.steps.iter().map(|step| step.extent_bytes);
    let (low, high) = (sizes().min().unwrap_or(1), sizes().max().unwrap_or(2));
    let x = Scale::doublings(Quantity::Memory, (real(low), real(high)), 8);
    let measured = extents.steps.iter().map(::qualify::ExtentStep::rate);
    let axes =
        (Axis::new("bytes between jumps", x), rate_axis(measured, Some(extents.bytes_per_s)));
    let said = match extents.knee_bytes {
        Some(knee) => format!(
            "A jump takes {}; from {} between jumps on, 90 % of {} are reached.",
            nanos(extents.jump_ns),
            ByteSize(knee),
            rate(extents.bytes_per_s)
        ),
        None => "Jumps cost nothing that can be seen.".to_owned(),
    };
    let mut chart = Chart::new("Rate by the bytes between jumps", &said, Shape::Wide, axes);
    if extents.bytes_per_s > 0 {
        let fitted = |step: u32| {
            let bytes = real(low) * (f64::from(step) / 4.0).exp2();
            let ns = real(extents.jump_ns) + bytes * 1e9 / real(extents.bytes_per_s);
            (bytes, bytes * 1e9 / ns)
        };
        let points = (0..256).map(fitted).take_while(|(bytes, _)| *bytes <= real(high)).collect();
        chart.add(Line::new("fitted", Colour::Quiet, points).dashed());
    }
    let steps = extents.steps.iter();
    let points = steps.map(|step| (real(step.extent_bytes), real(step.rate()))).collect();
    chart.add(Line::new("measured", Colour::First, points).with_markers());
    if let Some(knee) = extents.knee_bytes {
        let name = format!("knee: {}", ByteSize(knee));
        chart.add(Rule::vertical(&name, Colour::Bound, real(knee)));
    }
    chart
}
