//! A qualification as a page of HTML, to be shown to others.
//!
//! What it comes to stands first, in words; then the rates that it follows from, then each part
//! with its plots. The same numbers are in the terminal's summary, in JSON and in CSV.

mod comparison;
mod latency;
mod others;
mod rates;
mod verdict;

use ::qualify::{Extents, Part, PartResult, Qualification};
use page::safe::printable;
use page::text::disk_rate as rate;
use page::text::{nanos, plural};
use page::{Cell, Chart, Document};

use super::drive;
use super::text::{limit, target, took};

/// Where a page comes from.
const FOOT: &str =
    "Made by wirespool qualify. Rates of disks in powers of 1000, memory in powers of 1024.";

pub use comparison::{comparison_html, comparison_svg};

/// A qualification as an HTML page.
pub fn qualification_html(found: &Qualification) -> String {
    let title = format!("Qualification of {}", printable(&found.target.path));
    let mut page = Document::new(&title);
    page.heading(&title);
    page.remark(&target(&found.target));
    verdict::add(&mut page, found);
    let of_rates = rates::charts(found);
    if !of_rates.is_empty() {
        page.section("Rates");
        page.charts(&of_rates);
    }
    extents(&mut page, found);
    latency::add(&mut page, found);
    others::add(&mut page, found);
    layers(&mut page, found);
    method(&mut page, found);
    page.finish(FOOT)
}

/// Its plots as drawings that stand by themselves: names of files, and SVG.
pub fn qualification_svg(found: &Qualification) -> Vec<(String, String)> {
    let knee = jumps(found).map(rates::knee);
    let charts = rates::charts(found).into_iter().chain(knee).chain(latency::charts(found));
    documents(charts)
}

fn documents(charts: impl Iterator<Item = Chart>) -> Vec<(String, String)> {
    charts.map(|chart| (format!("{}.svg", chart.slug()), chart.document())).collect()
}

fn jumps(found: &Qualification) -> Option<&Extents> {
    found.parts.iter().find_map(|part| match part {
        PartResult::Extents(extents) if !extents.steps.is_empty() => Some(extents),
        _ => None,
    })
}

fn extents(page: &mut Document, found: &Qualification) {
    let Some(extents) = jumps(found) else { return };
    page.section("Jumps");
    page.charts(&[rates::knee(extents)]);
    let row = |step: &::qualify::ExtentStep| {
        let of_all = step.ns / step.extents.max(1);
        vec![
            Cell::number(units::ByteSize(step.extent_bytes).to_string()),
            Cell::number(step.extents.to_string()),
            Cell::number(nanos(of_all)),
            Cell::number(rate(step.rate())),
        ]
    };
    let rows: Vec<Vec<Cell>> = extents.steps.iter().map(row).collect();
    page.table(
        "Measured at random places",
        &["bytes between jumps", "extents", "time of one", "rate"],
        &rows,
    );
}

/// What lies below the target, as far as the machine says it.
fn layers(page: &mut Document, found: &Qualification) {
    let layers = &found.target.layers;
    if layers.is_empty() {
        return;
    }
    page.section("The target");
    let known = |value: &Option<String>| {
        Cell::text(value.as_ref().map_or_else(|| "?".to_owned(), |value| printable(value)))
    };
    let row = |layer: &::qualify::Layer| {
        vec![
            Cell::text(printable(&layer.name)),
            Cell::number(units::ByteSize(layer.size_bytes).to_string()),
            known(&layer.model),
            known(&layer.serial),
            known(&layer.firmware),
            Cell::text(if layer.is_rotational { "yes" } else { "no" }),
            known(&layer.write_cache),
            known(&layer.scheduler),
        ]
    };
    let rows: Vec<Vec<Cell>> = layers.iter().map(row).collect();
    let headings =
        ["device", "size", "model", "serial", "firmware", "says it turns", "cache", "scheduler"];
    page.table("The devices below it, the uppermost first", &headings, &rows);
    for layer in layers {
        for line in layer.drive.iter().flat_map(drive::lines) {
            page.paragraph(&format!("{}: {}.", printable(&layer.name), line.trim()));
        }
    }
    for limit in &found.target.limits {
        page.paragraph(&format!("Here {}.", self::limit(limit)));
    }
    if let Some(seen) = drive::seen(&found.target, ::qualify::seen(&found.parts)) {
        page.paragraph(&format!("What was seen: {seen}."));
    }
}

fn method(page: &mut Document, found: &Qualification) {
    page.section("How it was measured");
    page.paragraph(&took(found));
    let parts: Vec<&str> = found.parts.iter().map(|part| part.part().name()).collect();
    let count = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    page.paragraph(&format!("{}: {}.", plural(count, "part"), parts.join(", ")));
    for note in &found.notes {
        page.paragraph(&printable(note));
    }
    page.remark(
        "The guaranteed rate is the highest constant arrival that never overflows the pool, in any \
         stretch of what was measured, lap after lap; it is never above the mean. Traffic is \
         counted on the link, with preambles, check sequences and gaps; what it needs on the disk \
         includes the blocks around packets, heads and the index.",
    );
    if found.parts.iter().any(|part| part.part() == Part::Latency) {
        page.remark("A percentile is given only where ten or more values lie beyond it.");
    }
}
