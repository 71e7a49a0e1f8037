//! Holds: extracts that were put aside with their manifests.

use extract::HoldSummary;
use page::safe::{json_pretty, printable};
use page::table::{Column, render};
use page::text::grouped;
use units::ByteSize;

const COLUMNS: [Column; 5] = [
    Column { title: "HOLD", is_number: false, least: 12, rank: 0 },
    Column { title: "PACKETS", is_number: true, least: 0, rank: 1 },
    Column { title: "SIZE", is_number: true, least: 0, rank: 2 },
    Column { title: "COMPLETE", is_number: false, least: 0, rank: 3 },
    Column { title: "QUERY", is_number: false, least: 12, rank: 0 },
];

/// Holds as a table.
pub fn holds(holds: &[HoldSummary], width: Option<usize>) -> String {
    let row = |hold: &HoldSummary| {
        vec![
            printable(&hold.file),
            grouped(hold.packets),
            ByteSize(hold.bytes).to_string(),
            if hold.complete { "yes" } else { "no" }.to_owned(),
            printable(&hold.query),
        ]
    };
    let rows: Vec<Vec<String>> = holds.iter().map(row).collect();
    render(&COLUMNS, &rows, width)
}

/// Holds as a JSON array.
pub fn holds_json(holds: &[HoldSummary]) -> String {
    json_pretty(&holds)
}
