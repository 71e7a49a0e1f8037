//! Sessions of an archive, asked of a distributed engine: the statement for a query, the protocol
//! of Trino, its rows as what a search here finds, and what the archive says is missing.
//!
//! The engine may be anybody's: its rows are read as those of a service, its words are shown
//! without their control characters, and only the path of an address that it names is followed.
//! Not here: the network, which the caller brings along as a function ([`Call`]), and flags.

mod losses;
mod question;
mod row;
mod statement;

pub use losses::{Missing, missing};
pub use question::{Asked, NoOrder, Question};
pub use row::{NoRow, row};
pub use statement::{Call, Ended, Error, Take, Taken, Values, run};
