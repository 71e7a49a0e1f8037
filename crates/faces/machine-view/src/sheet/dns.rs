//! What is asked of DNS.

use talkers::{Asked, DnsGrouping};

use super::{Cell, Sheet, SheetColumn, SheetLine};

/// Lines of what is asked, most in forty seconds first.
pub fn dns_sheet(asked: &[Asked], grouping: DnsGrouping) -> Sheet {
    let title = match grouping {
        DnsGrouping::Source => "ASKED BY",
        DnsGrouping::Destination => "SERVER",
        DnsGrouping::Type => "TYPE",
        DnsGrouping::Rcode => "ANSWER",
        DnsGrouping::Domain => "DOMAIN",
        DnsGrouping::Name => "NAME",
    };
    let columns = vec![
        SheetColumn::words("key", title, 20, 0),
        SheetColumn::number("questions_2s", "2 S", 3),
        SheetColumn::number("questions_10s", "10 S", 2),
        SheetColumn::number("questions_40s", "40 S", 0),
        SheetColumn::number("absent", "NO SUCH NAME", 4),
        SheetColumn::number("errors", "ERRORS", 1),
        SheetColumn::number("unanswered", "NO ANSWER", 1),
        SheetColumn::number("failed_permille", "FAILED", 5),
        SheetColumn::number("latency_median_ns", "HALF WITHIN", 2),
        SheetColumn::number("latency_max_ns", "SLOWEST", 3),
    ];
    Sheet { columns, lines: asked.iter().map(line).collect(), ..Sheet::default() }
}

fn line(asked: &Asked) -> SheetLine {
    let [two, ten, all] = asked.questions;
    let failed = asked.absent + asked.errors + asked.unanswered;
    let cells = vec![
        Cell::Text(asked.key.to_string()),
        Cell::Count(two),
        Cell::Count(ten),
        Cell::Count(all),
        Cell::Count(asked.absent),
        Cell::Count(asked.errors),
        Cell::Count(asked.unanswered),
        Cell::Permille(units::number::permille(failed, all)),
        Cell::nanos(asked.latency_median_ns),
        Cell::nanos(asked.latency_max_ns),
    ];
    SheetLine { cells, query: Some(asked.key.query()) }
}
