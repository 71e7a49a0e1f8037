//! Databases of addresses that a query may ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use query::{Atlas, Field};

use crate::failure::Usage;

/// The largest that is read: they are held in memory.
const BYTES_MAX: u64 = 2 << 30;
/// The same of tags.
const TAGS_BYTES_MAX: u64 = 256 << 20;
/// The field that they are.
const TAG: &str = "tag";

/// Where fields come from that no packet has: databases of addresses, and tags.
#[derive(Debug, Args)]
pub struct AtlasFlags {
    /// An MMDB file with countries or autonomous systems of addresses, for the fields about them
    /// (country, asn and others); may be given several times, the first that knows counts
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,
    /// A file of what `wirespool tag` printed, for the field tag; may be given several times
    #[arg(long, value_name = "FILE")]
    tags: Vec<PathBuf>,
}

impl AtlasFlags {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        !self.mmdb.is_empty() || !self.tags.is_empty()
    }

    /// Whether there is what the field needs.
    pub fn check(&self, field: &Field) -> Result<(), Usage> {
        let given = if field.name == TAG { &self.tags } else { &self.mmdb };
        if given.is_empty() { Err(missing(field)) } else { Ok(()) }
    }

    /// Reads the files; `None` where none is given, which an error says if `field` needs one.
    pub fn read(&self, field: Option<&Field>) -> anyhow::Result<Option<Arc<Atlas>>> {
        field.map_or(Ok(()), |field| self.check(field))?;
        if self.mmdb.is_empty() && self.tags.is_empty() {
            return Ok(None);
        }
        let mut atlas = Atlas::default();
        for path in &self.tags {
            read_tags(path, &mut atlas)?;
        }
        for path in &self.mmdb {
            let added = atlas.add(host::read_input_bytes(path, BYTES_MAX)?);
            added.map_err(|error| Usage(format!("{}: {error}", page::safe::path(path))))?;
        }
        Ok(Some(Arc::new(atlas)))
    }
}

/// Adds the tags of a file; what is no line of `wirespool tag` is an error.
fn read_tags(path: &Path, atlas: &mut Atlas) -> anyhow::Result<()> {
    let text = host::read_input_text(path, TAGS_BYTES_MAX)?;
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let (session, tag) = session_view::session_tag(line).ok_or_else(|| {
            let path = page::safe::path(path);
            Usage(format!("{path}, line {number}: not what wirespool tag prints"))
        })?;
        atlas.tag(session, tag);
    }
    Ok(())
}

/// A field has no values without a database, or without tags.
pub fn missing(field: &Field) -> Usage {
    if field.name == TAG {
        return Usage("the field tag needs what wirespool tag printed: --tags FILE".to_owned());
    }
    Usage(format!("the field {} needs a database of addresses: --mmdb FILE", field.name))
}
