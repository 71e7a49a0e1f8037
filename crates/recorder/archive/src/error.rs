//! Why sessions could not be archived.

use crate::open_sessions::OpenError;
use crate::store::StoreError;

/// Why archiving, verifying or merging failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The volume.
    #[error(transparent)]
    Extract(#[from] extract::Error),
    /// Rows could not be encoded, or read again.
    #[error(transparent)]
    Parquet(#[from] parquet::errors::ParquetError),
    /// Columns do not fit to each other.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    /// Sessions that were open could not be encoded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An object of the archive is not as it was written, and nothing can be done without it.
    #[error("{name} in the archive is damaged: {why}")]
    Damaged {
        /// Its name in the store.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The volume has other stripes under the numbers of those that are archived, or none.
    #[error(
        "stripe {through} of the volume, the last one in the archive of sensor {sensor}, is not \
         what was archived (the volume was put back to an older state, and recorded to?): archive \
         it under another name (--sensor), with what both have; nothing that was archived is \
         changed"
    )]
    PutBack {
        /// The last stripe that is archived.
        through: String,
        /// Whose.
        sensor: String,
    },
    /// Another process merges objects of this sensor.
    #[error("objects of sensor {sensor} are being merged by {holder}, until {until} at the latest")]
    Leased {
        /// Whose.
        sensor: String,
        /// Who it says it is.
        holder: String,
        /// When its lease ends unless it is renewed.
        until: String,
    },
}
