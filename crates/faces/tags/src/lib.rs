//! Tags of sessions that a service keeps: a file with a line of JSON for each, as `wirespool tag`
//! prints them, with who put it there.
//!
//! The file is private, bounded, and changed as a whole: who reads it sees all of a change or
//! nothing. One service writes it. A tag says which session it is of by its ids and its start; the
//! session itself may be overwritten meanwhile. Called by `server`; not here: how sessions are
//! found for a tag.

mod store;
mod tag;

pub use store::{Error, Listed, Tags, Wanted};
pub use tag::{OfSession, Tag, TagList, Tagged};
