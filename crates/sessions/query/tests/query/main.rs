//! The query language from outside: by example, by property, against tcpdump, and its
//! documentation.

#![expect(clippy::unwrap_used, reason = "a failed setup is a failed test")]

mod atlas;
mod document;
mod language;
mod properties;
mod sessions;
mod tcpdump;
