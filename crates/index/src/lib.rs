//! Segments of session rows as Parquet, their directory and cache.

mod columns;
mod encode;
mod error;
mod meta;
mod names;
mod segment;

pub use encode::encode;
pub use error::{Error, Result};
pub use meta::{Interface, SegmentMeta};
pub use segment::{Columns, Segment, column_sizes};
