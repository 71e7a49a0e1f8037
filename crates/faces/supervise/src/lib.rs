//! One file for all recorders of a machine and the service over them, and the process that keeps
//! them running.
//!
//! ```text
//! file -- read() --> jobs: words of a command line, one a program
//!                      |
//!                  supervise(): starts each, starts it again when it ends,
//!                               compares jobs when the file is read again
//! ```
//!
//! A key of the file is a flag of the command line, and is declared there alone: the binary hands
//! in what flags there are ([`Table`]). Recorders and the service are processes of their own: each
//! goes on when another one ends, and recorders also when this process does.

mod absent;
mod config;
mod fault;
mod present;
mod supervisor;
mod value;

pub use absent::absent;
pub use config::{Job, Key, Table, given_twice, read};
pub use fault::Fault;
pub use present::{explain, meant_by, reference, show};
pub use supervisor::{Plan, ReadJobs, Supervision, supervise};
pub use value::Shape;
