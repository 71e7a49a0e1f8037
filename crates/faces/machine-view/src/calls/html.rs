//! System calls as part of a page: tables, and how long the calls took that took most.

use calls::CallWatch;
use page::latency::{Kind, latency_chart};
use page::safe::printable;
use page::{Chart, Document};
use units::Histogram;
use units::number::real;

use super::{doing, idle, longest, reasons, slowest, targets, threads};

/// Calls that have plots.
const PLOTTED: usize = 8;

/// Adds all of it.
pub(crate) fn add_calls(page: &mut Document, watch: &CallWatch) {
    page.section("What was called");
    if watch.count() == 0 {
        page.paragraph("Nothing.");
    }
    doing(watch).on(page);
    let sorted = longest(&watch.calls);
    let charts =
        sorted.into_iter().take(PLOTTED).filter_map(|(name, seen)| chart(name, &seen.times));
    page.charts(&charts.collect::<Vec<_>>());
    slowest(watch).on(page);
    page.section("What was waited for");
    reasons(watch).on(page);
    threads(watch).on(page);
    targets(watch).on(page);
    idle(watch).on(page);
}

fn chart(name: &str, times: &Histogram) -> Option<Chart> {
    let ranges = times.steps().map(|(from, to, count)| (real(from.max(1)), real(to), real(count)));
    let kind = Kind {
        name: "took",
        ranges: ranges.collect(),
        count: times.count(),
        max_ns: times.max_ns(),
    };
    let mark = |(name, permille): (&'static str, u64)| (name, times.quantile_ns(permille));
    let marks = [("p50", 500), ("p99", 990)].map(mark);
    let title = format!("How long {} took", printable(name));
    (times.count() > 0).then(|| latency_chart(&title, kind, None, &marks))
}
