//! A qualification as JSON: docs/qualification.md has the schema.

use ::qualify::{self as q, FILE_VERSION, Qualification};
use page::safe::json_pretty;
use serde::Serialize;

mod compare;

pub use compare::comparison_json;

/// The first fields are those that a script asks for; they repeat the verdict.
#[derive(Serialize)]
struct Told<'a> {
    version: u32,
    guaranteed_bytes_per_s: Option<u64>,
    mean_bytes_per_s: Option<u64>,
    minimum_bytes_per_s: Option<u64>,
    guaranteed_traffic_bit_per_s: Option<u64>,
    #[serde(flatten)]
    found: &'a Qualification,
    /// What follows from the parts, beside what the disk claims: computed anew by every reader.
    seen: q::Seen,
}

/// A qualification, as JSON.
pub fn qualification_json(found: &Qualification) -> String {
    let first = found.verdict.as_ref().and_then(|verdict| verdict.judged.first());
    let traffic = found.verdict.as_ref().map(|verdict| verdict.guaranteed_traffic_bit_per_s);
    json_pretty(&Told {
        version: FILE_VERSION,
        guaranteed_bytes_per_s: first.map(|judged| judged.guaranteed_bytes_per_s),
        mean_bytes_per_s: first.map(|judged| judged.mean_bytes_per_s),
        minimum_bytes_per_s: first.map(|judged| judged.minimum_bytes_per_s),
        guaranteed_traffic_bit_per_s: traffic,
        found,
        seen: q::seen(&found.parts),
    })
}
