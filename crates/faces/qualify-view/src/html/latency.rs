//! Latencies: histograms, and percentiles in a table.

use ::qualify::{Latencies, PartResult, Qualification};
use page::latency::{Kind, latency_chart};
use page::text::disk_rate as rate;
use page::text::{grouped, nanos, percent, plural};
use page::{Cell, Chart, Colour, Document, Rule};
use units::ByteSize;
use units::number::real;

/// Bars for each doubling of the latency.
const PER_DOUBLING: f64 = 4.0;
const SHARES: [(u32, &str); 5] =
    [(500_000, "p50"), (900_000, "p90"), (990_000, "p99"), (999_000, "p99.9"), (999_900, "p99.99")];

/// Histograms of all kinds of latencies.
pub(super) fn charts(found: &Qualification) -> Vec<Chart> {
    let of_part = |part: &PartResult| match part {
        PartResult::Latency(latency) => {
            let (device, arrival) = (&latency.of_device, &latency.from_arrival);
            Some(histogram("Latency of writes", device, Some(arrival)))
        }
        PartResult::Reads(reads) => {
            let mut chart = histogram("Latency of random reads", &reads.latency, None);
            if let Some(ns) = reads.hit_ns_max {
                let name = "cache hits end here";
                chart.add(Rule::vertical(name, Colour::Second, real(ns)).lower(3));
            }
            Some(chart)
        }
        PartResult::Mixed(mixed) => {
            let (alone, beside) = (&mixed.latency.of_device, &mixed.latency.from_arrival);
            Some(histogram("Latency of writes beside readers", alone, Some(beside)))
        }
        _ => None,
    };
    found.parts.iter().filter_map(of_part).collect()
}

pub(super) fn add(page: &mut Document, found: &Qualification) {
    let charts = charts(found);
    if charts.is_empty() {
        return;
    }
    page.section("Latencies");
    let mut rows = Vec::new();
    for part in &found.parts {
        match part {
            PartResult::Latency(latency) => {
                page.paragraph(&format!(
                    "Blocks of {} arrived at {} for {}, whatever the disk did: {} waited at most, \
                     and a pool that large is enough for that rate.",
                    ByteSize(latency.block_bytes),
                    rate(latency.offered_bytes_per_s),
                    nanos(latency.ns),
                    ByteSize(latency.backlog_bytes_max)
                ));
                rows.push(row("write, from its arrival", &latency.from_arrival));
                rows.push(row("write, of the device alone", &latency.of_device));
            }
            PartResult::Reads(reads) => {
                if let Some(ns) = reads.hit_ns_max {
                    let share = percent(reads.cache_hits, reads.latency.count());
                    let within = nanos(ns);
                    page.paragraph(&format!(
                        "A cache answered {share} of the reads, within {within}."
                    ));
                }
                rows.push(row("read of 4 KiB", &reads.latency));
            }
            PartResult::Mixed(mixed) => {
                rows.push(row(
                    "write beside readers, from its arrival",
                    &mixed.latency.from_arrival,
                ));
                rows.push(row("large read beside writing", &mixed.reads.streams));
                rows.push(row("4 KiB read beside writing", &mixed.reads.random));
            }
            PartResult::Iops(iops) => {
                for step in &iops.steps {
                    let depth = plural(u64::from(step.depth), "write");
                    rows.push(row(&format!("4 KiB write, {depth} under way"), &step.latency));
                }
            }
            _ => {}
        }
    }
    page.charts(&charts);
    let names = SHARES.map(|(_, name)| name);
    let headings = [&["", "count", "shortest", "mean"][..], &names, &["longest"]].concat();
    page.table("Percentiles", &headings, &rows);
}

fn row(name: &str, latencies: &Latencies) -> Vec<Cell> {
    let times = |ns: u64| Cell::number(nanos(ns));
    let mut cells = vec![Cell::text(name), Cell::number(grouped(latencies.count()))];
    cells.extend([latencies.min_ns(), latencies.mean_ns()].map(times));
    cells.extend(SHARES.map(|(share, _)| match latencies.quantile_ns(share) {
        Some(ns) => times(ns),
        None => Cell::number(""),
    }));
    cells.push(times(latencies.max_ns()));
    cells
}

/// Counts by equal steps on a logarithmic scale: from, to, count.
fn steps(latencies: &Latencies) -> Vec<(f64, f64, f64)> {
    let mut steps: Vec<(f64, u64)> = Vec::new();
    for (ns, count) in latencies.buckets() {
        let at = (real(ns.max(1)).log2() * PER_DOUBLING).floor();
        match steps.last_mut() {
            Some(last) if last.0 >= at => last.1 += count,
            _ => steps.push((at, count)),
        }
    }
    let edge = |at: f64| (at / PER_DOUBLING).exp2();
    steps.into_iter().map(|(at, count)| (edge(at), edge(at + 1.0), real(count))).collect()
}

/// Bars of one kind of latency; another is seen as a line of steps over them.
fn histogram(title: &str, bars: &Latencies, outline: Option<&Latencies>) -> Chart {
    let kind = |name, of: &Latencies| Kind {
        name,
        ranges: steps(of),
        count: of.count(),
        max_ns: of.max_ns(),
    };
    let marked = outline.unwrap_or(bars);
    let marks: Vec<(&str, u64)> = [(500_000, "p50"), (990_000, "p99"), (999_900, "p99.99")]
        .into_iter()
        .filter_map(|(share, name)| Some((name, marked.quantile_ns(share)?)))
        .collect();
    let outline = outline.map(|of| kind("from arrival", of));
    latency_chart(title, kind("device", bars), outline, &marks)
}
