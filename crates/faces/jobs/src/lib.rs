//! Long jobs of a service: a list of those that wait, run and have ended, each with how far it is,
//! who watches it and who wants it to end.
//!
//! The list has a bound, and is in memory: a service that is started anew begins with none. Called
//! by `server`, which does the jobs by processes of their own; not here: what a job does.

mod job;
mod list;

pub use job::{Job, JobList, Kind, State};
pub use list::{Full, Going, Jobs, NotEnded};
