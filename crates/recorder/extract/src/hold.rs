//! Holds: extracts that were put aside with their manifests.

use serde::{Deserialize, Serialize};

use crate::manifest::ManifestError;
use crate::request::CaseInfo;

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
    /// What it was made for.
    #[serde(flatten)]
    pub case: CaseInfo,
}

#[derive(Deserialize)]
struct Read {
    query: String,
    volume_id: String,
    complete: bool,
    outputs: Vec<OutputRead>,
    #[serde(flatten)]
    case: CaseInfo,
}

#[derive(Deserialize)]
struct OutputRead {
    packets: u64,
    bytes: u64,
}

/// What a manifest says of the hold in `file`.
pub fn parse_hold(file: &str, manifest: &str) -> Result<HoldSummary, ManifestError> {
    let Read { query, volume_id, complete, outputs, case } =
        serde_json::from_str(manifest).map_err(ManifestError::Json)?;
    Ok(HoldSummary {
        file: file.to_owned(),
        query,
        volume_id,
        packets: outputs.iter().map(|output| output.packets).sum(),
        bytes: outputs.iter().map(|output| output.bytes).sum(),
        complete,
        case,
    })
}
