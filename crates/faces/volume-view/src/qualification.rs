//! What the disks of a volume were measured for, and what is asked of them now.

use format::head::VolumeId;
use format::superblock::{Qualified, Superblock};
use page::safe::json_pretty;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use units::hex;

/// The report of a qualification in a file.
#[derive(Debug)]
pub struct QualificationReport {
    /// Name of the file.
    pub file: String,
    /// The beginning of its BLAKE3, as a superblock names it.
    pub id: [u8; 16],
    /// What it says.
    pub report: Value,
}

/// What the disks of a volume were measured for.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "QualificationOfVolume")]
pub struct OfVolume<'a> {
    volume_id: VolumeId,
    /// What the volume keeps of it, for each member; absent where it was made without.
    #[serde(skip_serializing_if = "Option::is_none")]
    qualified: Option<&'a Qualified>,
    /// What the disks are asked for now, as `status` says it of a recorder that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    headroom: Option<&'a Value>,
    /// What each member does now, as `status` says it of a recorder that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    devices: Option<&'a Value>,
    /// Reports that the service was given, as `qualify --json` writes them.
    reports: Vec<ReportOfVolume>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReportOfVolume {
    file: String,
    /// The beginning of the BLAKE3 of the file.
    id: String,
    /// The volume was made by this report.
    is_of_volume: bool,
    #[schemars(with = "Map<String, Value>")]
    report: Value,
}

/// What was measured and what is asked, as a JSON object. `disks` is what a recorder that runs says
/// of its disks.
pub fn qualification_json(
    superblock: &Superblock,
    disks: Option<&Value>,
    reports: Vec<QualificationReport>,
) -> String {
    let kept = superblock.qualified.as_ref();
    let is_of_volume = |id: &[u8; 16]| kept.is_some_and(|qualified| qualified.report == *id);
    let reports = reports.into_iter().map(|QualificationReport { file, id, report }| {
        ReportOfVolume { file, id: hex(&id), is_of_volume: is_of_volume(&id), report }
    });
    let of_disks = |key| disks.and_then(|disks| disks.get(key));
    json_pretty(&OfVolume {
        volume_id: superblock.volume_id,
        qualified: kept,
        headroom: of_disks("headroom"),
        devices: of_disks("devices"),
        reports: reports.collect(),
    })
}
