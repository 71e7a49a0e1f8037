//! A file of the repository, as every rule sees it.

use std::fs;

use anyhow::{Context, Result};

use crate::process;

/// One file: its path from the root, its size, and its text where it is text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    pub(crate) text: Option<String>,
}

impl File {
    /// `None` for what is no file, such as a link.
    pub(crate) fn read(path: &str) -> Result<Option<File>> {
        let full = process::root().join(path);
        // Deleted but not yet committed, or a link: git lists both.
        if !fs::symlink_metadata(&full).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        let size_bytes = u64::try_from(bytes.len()).expect("a length fits u64");
        Ok(Some(File { path: path.to_owned(), size_bytes, text: String::from_utf8(bytes).ok() }))
    }

    /// Whether the name ends with this extension.
    pub(crate) fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }
}
