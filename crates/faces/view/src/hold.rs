//! Holds: extracts that were put aside with their manifests.

use serde::{Deserialize, Serialize};
use units::ByteSize;

use crate::manifest::ManifestError;
use crate::safe::{json_pretty, printable};
use crate::table::{Column, render};
use crate::text::grouped;

/// A hold as its manifest describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HoldSummary {
    /// Name of its file.
    pub file: String,
    /// What was asked for.
    pub query: String,
    /// Where it is from.
    pub volume_id: String,
    /// Packets in the hold.
    pub packets: u64,
    /// Length of its file.
    pub bytes: u64,
    /// Whether nothing was missing.
    pub complete: bool,
}

#[derive(Deserialize)]
struct Read {
    query: String,
    volume_id: String,
    complete: bool,
    outputs: Vec<OutputRead>,
}

#[derive(Deserialize)]
struct OutputRead {
    packets: u64,
    bytes: u64,
}

/// What a manifest says of the hold in `file`.
pub fn parse_hold(file: &str, manifest: &str) -> Result<HoldSummary, ManifestError> {
    let Read { query, volume_id, complete, outputs } =
        serde_json::from_str(manifest).map_err(ManifestError::Json)?;
    Ok(HoldSummary {
        file: file.to_owned(),
        query,
        volume_id,
        packets: outputs.iter().map(|output| output.packets).sum(),
        bytes: outputs.iter().map(|output| output.bytes).sum(),
        complete,
    })
}

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
