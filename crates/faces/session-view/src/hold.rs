//! Holds: extracts that were put aside with their manifests.

use manifest::{Altered, CaseInfo, HoldSummary};
use page::safe::{json_pretty, printable};
use page::table::{Column, render};
use page::text::grouped;
use units::{ByteSize, Timestamp};

/// In front of the query, where some hold says what it was made for.
const CASE_COLUMNS: [Column; 3] = [
    Column { title: "CASE", is_number: false, least: 8, rank: 1 },
    Column { title: "REQUESTER", is_number: false, least: 8, rank: 4 },
    Column { title: "PURPOSE", is_number: false, least: 8, rank: 5 },
];
const COLUMNS: [Column; 5] = [
    Column { title: "HOLD", is_number: false, least: 12, rank: 0 },
    Column { title: "PACKETS", is_number: true, least: 0, rank: 1 },
    Column { title: "SIZE", is_number: true, least: 0, rank: 2 },
    Column { title: "COMPLETE", is_number: false, least: 0, rank: 3 },
    Column { title: "QUERY", is_number: false, least: 12, rank: 0 },
];

/// Holds as a table.
pub fn holds(holds: &[HoldSummary], width: Option<usize>) -> String {
    let has_cases = holds.iter().any(|hold| hold.case.lines().next().is_some());
    let row = |hold: &HoldSummary| {
        let CaseInfo { case, purpose, requester } = &hold.case;
        let cases = [case, requester, purpose].map(|text| printable(text.as_deref().unwrap_or("")));
        let front = [
            printable(&hold.file),
            grouped(hold.packets),
            ByteSize(hold.bytes).to_string(),
            complete(hold),
        ];
        let cases = cases.into_iter().filter(|_| has_cases);
        front.into_iter().chain(cases).chain([printable(&hold.query)]).collect()
    };
    let rows: Vec<Vec<String>> = holds.iter().map(row).collect();
    let [front @ .., query] = COLUMNS;
    let cases = CASE_COLUMNS.into_iter().filter(|_| has_cases);
    let columns: Vec<Column<'_>> = front.into_iter().chain(cases).chain([query]).collect();
    render(&columns, &rows, width)
}

/// Whether nothing is missing, as long as it is what was put aside; of a hold that was made while
/// its volume was recorded, up to when.
fn complete(hold: &HoldSummary) -> String {
    match hold.altered {
        Some(Altered::Missing) => return "file missing".to_owned(),
        Some(Altered::Length) => return "other length".to_owned(),
        Some(Altered::Manifest) => return "manifest altered".to_owned(),
        None => {}
    }
    let to = hold.complete_to_ns.map(|ns| Timestamp(ns).to_string());
    match (hold.complete, to) {
        (false, _) => "no".to_owned(),
        (true, None) => "yes".to_owned(),
        (true, Some(to)) => format!("to {}", to.get(..19).unwrap_or(&to)),
    }
}

/// Holds as a JSON array.
pub fn holds_json(holds: &[HoldSummary]) -> String {
    json_pretty(&holds)
}
