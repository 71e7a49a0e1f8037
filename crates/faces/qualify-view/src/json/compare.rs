//! A comparison as JSON.

use ::qualify::{Comparison, FILE_VERSION};
use page::safe::json_pretty;
use serde::Serialize;

#[derive(Serialize)]
struct File<'a> {
    version: u32,
    comparison: &'a Comparison,
}

/// A comparison, as JSON.
pub fn comparison_json(found: &Comparison) -> String {
    json_pretty(&File { version: FILE_VERSION, comparison: found })
}
