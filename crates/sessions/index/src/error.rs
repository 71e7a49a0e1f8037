//! What can go wrong between session rows and their bytes.

use parquet::errors::ParquetError;

/// A segment cannot be written, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a Parquet file, or a damaged one.
    #[error("segment is not readable as Parquet")]
    Parquet(#[from] ParquetError),
    /// Arrays that do not fit the schema, or a damaged file.
    #[error("segment has malformed columns")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A Parquet file, but none of wirespool, or of a later one.
    #[error("segment metadata lacks a valid {field}")]
    Metadata {
        /// Key of the line that is missing or wrong.
        field: &'static str,
    },
    /// A column that the schema requires is absent or of another type.
    #[error("segment has no column {column} of the right type")]
    Column {
        /// Name of the column.
        column: &'static str,
    },
    /// A value that no writer writes.
    #[error("row {row} has an impossible {column}")]
    Value {
        /// Name of the column.
        column: &'static str,
        /// Row in the segment, from 0.
        row: u64,
    },
    /// The file of a segment cannot be read any more.
    #[error("segment file is not readable")]
    Content(#[source] std::io::Error),
    /// A part of a segment's file is not what was written.
    #[error("segment file has a damaged {part}")]
    Checksum {
        /// What the part is.
        part: &'static str,
    },
    /// The cache directory failed.
    #[error("cannot {action} {name} in the index directory")]
    Files {
        /// What was tried: `read`, `write`, `list` or `remove`.
        action: &'static str,
        /// Name of the file; `*` for the listing.
        name: String,
        /// What the directory said.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether it is the file that failed, so that another copy of the segment may be whole.
    pub fn is_of_file(&self) -> bool {
        matches!(self, Self::Content(_) | Self::Checksum { .. })
    }
}

/// Shorthand of this crate.
pub type Result<T> = core::result::Result<T, Error>;
