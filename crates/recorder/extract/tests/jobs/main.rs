//! The jobs on real volumes: sessions of the corpus come out as they went in, damage and loss are
//! named.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may stop at once, reads files, and its figures are the result"
)]

mod anonymised;
mod answers;
mod beginning;
mod connections;
mod corpus;
mod extremes;
mod laps;
mod order;
mod random;
mod reader;
mod recorder;
mod row_groups;
mod selection;
mod slices;
mod sources;
mod whole;
