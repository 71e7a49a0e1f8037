//! Packets of a source onto an interface, on schedule: the replay job.
//!
//! The packets of an input are laid into memory as frames with their places in the schedule, and
//! [`replay`] sends them in one thread or several. What fits into the memory given is read once,
//! before the first packet goes; of a larger input so much is read ahead, by a thread of its own.
//! Frames of one pair of hosts go through one thread, in their order.
//!
//! Invariants: no packet goes before its time; each packet of the input is sent or in exactly one
//! counter of [`Skipped`]; nothing is sent twice because an interface had no space.
//!
//! Time, packets and the way out are arguments: [`units::Sleep`], [`capture::Source`],
//! [`capture::Outlet`].

mod error;
mod frames;
mod headers;
mod job;
mod load;
mod options;
mod reader;
mod report;
mod schedule;
mod sender;
mod stream;
mod unique;

pub use error::Error;
pub use job::replay;
pub use options::{Input, Open, Options, Rewrite};
pub use report::{Progress, Report, Skipped, Timing};
pub use schedule::Pace;
pub use unique::renumber;
