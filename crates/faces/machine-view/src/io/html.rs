//! What disks were asked for, as part of a page: tables, and of each disk its bytes over time and
//! place, its latencies and the sizes of its requests.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use diagnose::io::{DiskSeen, IoWatch, OperationSeen, Places};
use page::latency::{Kind, latency_chart};
use page::text::{nanos, plural, rate};
use page::{Areas, Axis, Bars, Chart, Colour, Document, Line, Quantity, Scale, Shape};
use units::number::real;
use units::{ByteSize, Histogram};

use super::{depths, files, held_back, overview, plural_name, processes};

/// Disks that have plots.
const PLOTTED_MAX: usize = 12;
/// Stretches that the used part of a disk is drawn in, at most.
const ROWS_DRAWN: u64 = 80;
const KINDS: [(&str, Colour); 2] = [("read", Colour::First), ("written", Colour::Second)];

/// Adds all of it.
pub(crate) fn add_disks(page: &mut Document, watch: &IoWatch) {
    page.section("What disks did");
    let overview = overview(watch);
    if overview.rows.is_empty() {
        page.paragraph("Nothing.");
    }
    overview.on(page);
    for line in depths(watch).iter().chain(&held_back(watch)) {
        page.remark(line);
    }
    let mut disks: Vec<_> = watch.disks.iter().collect();
    disks.sort_by_key(|(_, seen)| Reverse(seen.device_ns));
    for (disk, seen) in disks.iter().take(PLOTTED_MAX) {
        let name = watch.device_name(**disk);
        let charts = charts(&name, seen);
        if !charts.is_empty() {
            page.subsection(&name);
            page.charts(&charts);
        }
    }
    if disks.len() > PLOTTED_MAX {
        let rest = u64::try_from(disks.len() - PLOTTED_MAX).unwrap_or(u64::MAX);
        page.remark(&format!("{} had less to do and no plots.", plural(rest, "further disk")));
    }
    let (processes, files) = (processes(watch), files(watch));
    if !processes.rows.is_empty() || !files.rows.is_empty() {
        page.section("Processes and files");
        processes.on(page);
        files.on(page);
    }
}

fn charts(disk: &str, seen: &DiskSeen) -> Vec<Chart> {
    let mut charts: Vec<Chart> = over_time(&seen.places).into_iter().collect();
    charts.extend(over_place(&seen.places));
    for (operation, of) in &seen.operations {
        let kind = plural_name(*operation);
        charts.extend(latencies(&format!("Latency of {kind}, {disk}"), of));
        charts.extend(sizes(&format!("Sizes of {kind}, {disk}"), of));
    }
    charts
}

/// Time from the first request to the end of the last column.
fn time_axis(places: &Places, ticks: u32) -> Axis {
    let columns = places.cells.keys().map(|(column, _)| column + 1).max().unwrap_or(1);
    let end_ns = real(columns) * real(places.column_ns);
    Axis::new("time", Scale::between(Quantity::Time, (0.0, end_ns), ticks))
}

/// Kinds of which there are any bytes: place in a cell, name, colour.
fn used(places: &Places) -> impl Iterator<Item = (usize, &'static str, Colour)> {
    let is_used =
        |at: usize| places.cells.values().any(|cell| cell.get(at).is_some_and(|it| *it > 0));
    let kinds = KINDS.into_iter().enumerate().map(|(at, (name, colour))| (at, name, colour));
    kinds.filter(move |(at, ..)| is_used(*at))
}

/// Bytes a second as the time goes by.
fn over_time(places: &Places) -> Option<Chart> {
    let columns = places.cells.keys().map(|(column, _)| column + 1).max()?;
    let mut bytes: BTreeMap<u64, [u64; 2]> = (0..columns).map(|at| (at, [0; 2])).collect();
    for ((column, _), cell) in &places.cells {
        let sums = bytes.entry(*column).or_default();
        sums.iter_mut().zip(cell).for_each(|(sum, more)| *sum += more);
    }
    let per_second = |amount: u64| real(amount) * 1e9 / real(places.column_ns.max(1));
    let most = bytes.values().flatten().copied().max().unwrap_or(0);
    let y = Scale::from_zero(Quantity::Rate, per_second(most) * 1.04, 5);
    let axes = (time_axis(places, 8), Axis::new("rate", y));
    let column_ns = i64::try_from(places.column_ns).unwrap_or(i64::MAX);
    let said = format!(
        "{} at most, in steps of {}. A request counts when it goes to the disk.",
        rate(most, column_ns),
        nanos(places.column_ns)
    );
    let mut chart = Chart::new("Bytes over time", &said, Shape::Wide, axes);
    for (at, name, colour) in used(places) {
        let value = |cell: &[u64; 2]| per_second(cell.get(at).copied().unwrap_or(0));
        let step = |column: u64| real(column) * real(places.column_ns);
        let last = bytes.last_key_value().map(|(_, cell)| (step(columns), value(cell)));
        let points = bytes.iter().map(|(column, cell)| (step(*column), value(cell))).chain(last);
        let line = Line::new(name, colour, points.collect()).stepped();
        chart.add(if at == 0 { line } else { line.thin() });
    }
    Some(chart)
}

/// Where was read and written, when; apart, because they may be at the same places.
fn over_place(places: &Places) -> Vec<Chart> {
    let rows = places.cells.keys().map(|(_, row)| *row);
    let (Some(first), Some(last)) = (rows.clone().min(), rows.max()) else { return Vec::new() };
    let joined = (last - first + 1).div_ceil(ROWS_DRAWN);
    let row_bytes = places.row_bytes.saturating_mul(joined);
    let place = |row: u64| real(first) * real(places.row_bytes) + real(row) * real(row_bytes);
    let top = place((last - first) / joined + 1);
    let kinds: Vec<_> = used(places).collect();
    let shape = if kinds.len() > 1 { Shape::Half } else { Shape::Wide };
    let chart = |(at, name, colour): (usize, &str, Colour)| {
        let mut areas: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for ((column, row), cell) in &places.cells {
            if let Some(bytes) = cell.get(at).filter(|bytes| **bytes > 0) {
                *areas.entry(((row - first) / joined, *column)).or_default() += bytes;
            }
        }
        let total = areas.values().sum();
        let y = Scale::between(Quantity::Place, (place(0), top), 5);
        let axes = (time_axis(places, 4), Axis::new("place on the disk", y));
        let said = format!(
            "{} {name}; a mark is {} in {}.",
            ByteSize(total),
            ByteSize(row_bytes),
            nanos(places.column_ns)
        );
        let mut chart = Chart::new(&format!("Offset over time, {name}"), &said, shape, axes);
        let area = |((row, column), _): (&(u64, u64), &u64)| {
            let from = real(*column) * real(places.column_ns);
            ((from, from + real(places.column_ns)), (place(*row), place(row + 1)))
        };
        chart.add(Areas::new(colour, areas.iter().map(area).collect()));
        chart
    };
    kinds.into_iter().map(chart).collect()
}

/// At the disk, and before.
fn latencies(title: &str, of: &OperationSeen) -> Option<Chart> {
    let kind = |name, of: &Histogram| Kind {
        name,
        ranges: of
            .steps()
            .map(|(from, to, count)| (real(from.max(1)), real(to), real(count)))
            .collect(),
        count: of.count(),
        max_ns: of.max_ns(),
    };
    let outline = Some(&of.queue).filter(|queue| queue.count() > 0);
    let mark = |(name, permille): (&'static str, u64)| (name, of.device.quantile_ns(permille));
    let marks = [("p50", 500), ("p99", 990)].map(mark);
    (of.device.count() > 0).then(|| {
        let outline = outline.map(|queue| kind("waited", queue));
        latency_chart(title, kind("at the disk", &of.device), outline, &marks)
    })
}

fn sizes(title: &str, of: &OperationSeen) -> Option<Chart> {
    let (least, most) = (*of.sizes.keys().min()?, *of.sizes.keys().max()?);
    let bytes = |power: u32| f64::from(power).exp2();
    // A power of two stands in the middle of its bar: most requests are of exactly so many bytes.
    let half = 2_f64.sqrt();
    let x = Scale::doublings(Quantity::Memory, (bytes(least) / half, bytes(most) * half), 6);
    let largest = of.sizes.values().copied().max().unwrap_or(0);
    let y = Scale::from_zero(Quantity::Count, real(largest), 4);
    let axes = (Axis::new("bytes of a request, at most", x), Axis::new("count", y));
    let said = format!(
        "{}, {} in the mean.",
        plural(of.all.count, "request"),
        ByteSize(of.all.bytes / of.all.count.max(1))
    );
    let mut chart = Chart::new(title, &said, Shape::Half, axes);
    let bar =
        |(power, count): (&u32, &u64)| (bytes(*power) / half, bytes(*power) * half, real(*count));
    chart.add(Bars::new("", Colour::First, of.sizes.iter().map(bar).collect()));
    Some(chart)
}
