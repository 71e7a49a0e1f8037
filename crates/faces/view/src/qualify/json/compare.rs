//! A comparison as JSON.

use ::qualify::Comparison;
use serde::{Deserialize, Serialize};

use super::VERSION;

use crate::safe::json_pretty;

#[derive(Serialize)]
struct FileJson<'a> {
    version: u32,
    comparison: &'a Comparison,
}

/// A comparison, as JSON.
pub fn comparison_json(found: &Comparison) -> String {
    json_pretty(&FileJson { version: VERSION, comparison: found })
}

/// Reads it, whatever its version.
pub(super) fn read_comparison(text: &str) -> serde_json::Result<Comparison> {
    #[derive(Deserialize)]
    struct ReadJson {
        comparison: Comparison,
    }
    serde_json::from_str(text).map(|ReadJson { comparison }| comparison)
}
