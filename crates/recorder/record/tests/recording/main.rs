//! The recording job against the real world: captures, other people's tools, kills, links, full
//! disks.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may stop at once, reads files, sleeps, and its figures are the result"
)]

mod child;
mod clock;
mod crash;
mod foreign_tools;
mod hostile;
mod indexers;
mod live;
mod members;
mod namespace;
mod numbered;
mod roundtrip;
mod selection;
mod space;
mod volumes;
