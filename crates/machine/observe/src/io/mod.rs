//! Input and output as this machine's kernel tells it: counters of disks and processes, which files
//! a process has open, who touches files.
//!
//! Tracepoints are in [`crate::tracepoints`]; nothing here decides.

mod counters;
mod open_files;
mod touched;

pub use counters::{
    DiskCounters, Process, ProcessCounters, disks, is_whole_disk, moved_here, process, processes,
    written_here,
};
pub use open_files::{
    OpenFile, backing_files, files_below, link_of, network_of, open_files, opened, writes_durably,
};
pub use touched::{Touch, TouchKind, Watched};

pub(crate) use counters::{read_any_text, transferred};
pub(crate) use touched::read_any_events;
