//! Segments of session rows as Parquet, their directory and cache.
//!
//! [`encode`] turns the rows of a segment into a Parquet file, [`Segment`] reads it back by time
//! and by columns, and [`Catalog`] knows which segments a volume has, where their files are and
//! when they retire. How a file is cut into INDEX pieces is `format::directory`'s, which rows a
//! query wants is `query`'s. Columns: docs/sessions.md.
//!
//! Nothing here reads a clock or opens a file: the index directory comes in as [`Files`], bytes
//! from the ring through closures.
//!
//! Invariants: every field of a slice survives encoding exactly; rows lie in the order of their
//! start, and a row's number never changes, because session ids are made of it; the files read
//! without wirespool.

mod arrays;
mod bounds;
mod catalog;
mod chunks;
mod column_encoder;
mod columns;
mod content;
mod encode;
mod error;
mod file_name;
mod files;
mod filter;
mod group;
mod layout;
mod meta;
mod names;
mod narrow;
mod page;
mod sealed_files;
mod segment;
mod shape;
mod table;
mod thrift;

pub use catalog::{Catalog, IdentitiesOf, LookUp, Packets, RuledOut};
pub use columns::is_name;
pub use content::Content;
pub use encode::{Encoded, EncodedGroup, GroupEncoder, by_start, encode};
pub use error::{Error, Result};
pub use file_name::Identity;
pub use files::{Files, MemoryFiles};
pub use filter::{Needed, Sum, knows_values_of};
pub use layout::GROUP_ROWS;
pub use meta::{Interface, LeftOut, SegmentMeta};
pub use sealed_files::{IndexKeys, SealedFiles};
pub use segment::{Columns, Segment, column_sizes};
pub use table::{column_names, column_of, schema};
