//! What a worker has the program do, which knows recorders, users and SQL.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use completeness::Completeness;
use extract::{Options, Recorder};
use questions::RowForm;
use session_view::Maker;

/// Asks the recorder of a volume, any member of which is named, with those that are elsewhere.
pub type CatchUp = fn(&Path, &[PathBuf], &mut dyn FnMut(&str)) -> bool;

/// What a worker has others do; the program knows it.
#[derive(Debug)]
pub struct Recorders {
    /// Has the recorder make durable what it has taken; whether one runs. What keeps it from that
    /// is told.
    pub catch_up: CatchUp,
    /// Asks for one that may have begun a moment ago.
    pub beginning: fn(PathBuf, Vec<PathBuf>) -> Recorder,
    /// How the recording stands, as JSON, if one goes on.
    pub state: fn(&Path, &[PathBuf]) -> Option<String>,
    /// What manifests say of who makes an extract.
    pub maker: fn() -> &'static Maker,
    /// How SQL is asked; builds without its engine cannot.
    pub sql: Option<SqlJob>,
}

/// Why SQL has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqlRefused {
    /// The query is wrong; in words, with its place.
    Query(String),
    /// The volume cannot be read.
    Volume(extract::Error),
    /// Anything else.
    Other(String),
}

/// Answers an SQL query over a volume, with at most so many rows; gives what is missing from it.
/// The answer is handed over as bytes, with how many rows they are. A break ends it early.
pub type SqlJob = fn(
    &Options,
    (&str, RowForm, Option<u64>),
    &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
) -> Result<Completeness, SqlRefused>;
