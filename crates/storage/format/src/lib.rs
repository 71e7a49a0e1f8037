//! Our bytes on disk, and pcapng bytes: encode and decode, no I/O.
//!
//! The layouts are drawn once, in `docs/format.md`; the code here links to its sections and asserts
//! offsets and sizes at compile time.

pub mod checksum;
pub mod claim;
pub mod directory;
mod field;
pub mod geometry;
pub mod head;
pub mod key_log;
pub mod key_row;
pub mod kind;
pub mod local;
pub mod pcapng;
pub mod piece;
pub mod recorded;
pub mod session_row;
pub mod stored_field;
pub mod superblock;
pub mod usable;
