//! Holds: extracts that were put aside with their manifests.

use evidence::{CaseInfo, TrustedKeys, split_sealed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{MANIFEST_VERSION, ManifestError};

/// How a hold is seen not to be what was put aside, without reading its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Altered {
    /// Its file is gone.
    Missing,
    /// Its file has another length.
    Length,
    /// Its manifest is not the one that was written.
    Manifest,
}

/// A hold as its manifest describes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Hold")]
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
    /// Whether nothing was missing when it was made.
    pub complete: bool,
    /// It is not what was put aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub altered: Option<Altered>,
    /// Its recorder went on: it is complete up to this time, and what came later is not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_to_ns: Option<i64>,
    /// What the credential sees at most that put it aside over the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What it was made for.
    #[serde(flatten)]
    pub case: CaseInfo,
}

#[derive(Default, Deserialize)]
struct RequestRead {
    #[serde(default)]
    filter: Option<String>,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    request: RequestRead,
    #[serde(default)]
    version: u16,
    query: String,
    volume_id: String,
    complete: bool,
    outputs: Vec<OutputRead>,
    to_ns: Option<i64>,
    completeness: Option<CompletenessRead>,
    #[serde(flatten)]
    case: CaseInfo,
}

#[derive(Deserialize)]
struct CompletenessRead {
    #[serde(default)]
    recorded: Vec<StretchRead>,
}

#[derive(Deserialize)]
struct StretchRead {
    to_ns: i64,
    end: String,
}

impl Read {
    /// The end of what was recorded, where the query asks for more.
    fn complete_to_ns(&self) -> Option<i64> {
        let recorded = self.completeness.iter().flat_map(|of| &of.recorded);
        let going = recorded.filter(|stretch| stretch.end == "going").map(|stretch| stretch.to_ns);
        let through = going.max()?;
        (self.complete && self.to_ns.is_none_or(|to| to > through)).then_some(through)
    }
}

#[derive(Deserialize)]
struct OutputRead {
    packets: u64,
    bytes: u64,
}

/// What a manifest says of the hold in `file`, which has so many bytes if it is there.
pub fn parse_hold(
    file: &str,
    len: Option<u64>,
    manifest: &str,
) -> Result<HoldSummary, ManifestError> {
    let read: Read = serde_json::from_str(manifest).map_err(ManifestError::Json)?;
    let complete_to_ns = read.complete_to_ns();
    let Read { version, query, volume_id, complete, outputs, case, request, .. } = read;
    let bytes = outputs.iter().map(|output| output.bytes).sum();
    let altered = match len {
        None => Some(Altered::Missing),
        Some(len) if len != bytes => Some(Altered::Length),
        Some(_) if version >= MANIFEST_VERSION && !is_as_sealed(manifest) => {
            Some(Altered::Manifest)
        }
        Some(_) => None,
    };
    Ok(HoldSummary {
        file: file.to_owned(),
        query,
        volume_id,
        packets: outputs.iter().map(|output| output.packets).sum(),
        bytes,
        complete,
        altered,
        complete_to_ns,
        filter: request.filter,
        case,
    })
}

fn is_as_sealed(manifest: &str) -> bool {
    let trusted = TrustedKeys::default();
    split_sealed(manifest).is_ok_and(|(text, seal)| seal.check(text.as_bytes(), &trusted).is_ok())
}
