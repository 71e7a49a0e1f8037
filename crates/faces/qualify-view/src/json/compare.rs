//! A comparison as JSON.

use ::qualify::{Comparison, FILE_VERSION};
use page::safe::json_pretty;
use schemars::JsonSchema;
use serde::Serialize;

/// A comparison of several targets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonFile<'a> {
    #[schemars(extend("const" = FILE_VERSION))]
    version: u32,
    comparison: &'a Comparison,
}

/// A comparison, as JSON.
pub fn comparison_json(found: &Comparison) -> String {
    json_pretty(&ComparisonFile { version: FILE_VERSION, comparison: found })
}
