//! A qualification as JSON: docs/qualification.md has the schema.

use ::qualify::{self as q, FILE_VERSION, Qualification};
use page::safe::json_pretty;
use schemars::JsonSchema;
use serde::Serialize;

mod compare;

pub use compare::{ComparisonFile, comparison_json};

/// A qualification with what scripts ask for in front, which repeats the verdict. Times are in
/// nanoseconds, sizes in bytes, rates in bytes a second unless said; null is not known.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QualificationFile<'a> {
    #[schemars(extend("const" = FILE_VERSION))]
    version: u32,
    guaranteed_bytes_per_s: Option<u64>,
    mean_bytes_per_s: Option<u64>,
    minimum_bytes_per_s: Option<u64>,
    guaranteed_traffic_bit_per_s: Option<u64>,
    #[serde(flatten)]
    found: &'a Qualification,
    /// What follows from the parts, beside what the disk claims: computed anew by every reader.
    #[schemars(default)]
    seen: q::Seen,
}

/// A qualification, as JSON.
pub fn qualification_json(found: &Qualification) -> String {
    let first = found.verdict.as_ref().and_then(|verdict| verdict.judged.first());
    let traffic = found.verdict.as_ref().map(|verdict| verdict.guaranteed_traffic_bit_per_s);
    json_pretty(&QualificationFile {
        version: FILE_VERSION,
        guaranteed_bytes_per_s: first.map(|judged| judged.guaranteed_bytes_per_s),
        mean_bytes_per_s: first.map(|judged| judged.mean_bytes_per_s),
        minimum_bytes_per_s: first.map(|judged| judged.minimum_bytes_per_s),
        guaranteed_traffic_bit_per_s: traffic,
        found,
        seen: q::seen(&found.parts),
    })
}
