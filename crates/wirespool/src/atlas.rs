//! Databases of addresses that a query may ask.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use query::{Atlas, Field};

use crate::failure::Usage;

/// The largest that is read: they are held in memory.
const BYTES_MAX: u64 = 2 << 30;

#[derive(Debug, Args)]
pub(crate) struct AtlasFlags {
    /// An MMDB file with countries or autonomous systems of addresses, for the fields about them
    /// (country, asn and others); may be given several times, the first that knows counts
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,
}

impl AtlasFlags {
    /// Reads the files; `None` where none is given, which an error says if `field` needs one.
    pub(crate) fn read(&self, field: Option<&Field>) -> anyhow::Result<Option<Arc<Atlas>>> {
        if self.mmdb.is_empty() {
            return field.map_or(Ok(None), |field| Err(missing(field).into()));
        }
        let mut atlas = Atlas::default();
        for path in &self.mmdb {
            let mut bytes = Vec::new();
            host::open_input(path)?
                .take(BYTES_MAX)
                .read_to_end(&mut bytes)
                .with_context(|| format!("cannot read {}", view::path(path)))?;
            let added = atlas.add(bytes);
            added.map_err(|error| Usage(format!("{}: {error}", view::path(path))))?;
        }
        Ok(Some(Arc::new(atlas)))
    }
}

/// A field has no values without a database.
pub(crate) fn missing(field: &Field) -> Usage {
    Usage(format!("the field {} needs a database of addresses: --mmdb FILE", field.name))
}
