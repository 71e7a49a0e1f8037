//! Figures by their names, as `scale` reads them.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// Notes a figure, and that it was measured, to five digits.
pub(super) fn note(figures: &mut Map<String, Value>, name: &str, value: f64) {
    let from = "measured: bench costs";
    let value = format!("{value:.4e}").parse::<f64>().unwrap_or(value);
    figures.insert(name.to_owned(), json!({ "value": value, "from": from }));
}

/// Bytes of all files below a folder.
pub(super) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
