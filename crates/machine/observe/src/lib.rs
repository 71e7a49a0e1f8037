//! The kernel and other processes, watched: what disks are asked for and by whom, who touches
//! files, which groups are held back at disks, what processors do and in which function, what
//! processes and threads have used, and what this machine is.
//!
//! By tracepoints and samples of `perf_event_open(2)`, by `fanotify(7)`, and by `/proc` and `/sys`.
//! Nothing here changes what it watches, and nothing decides: `diagnose` judges what it finds.

pub mod budgets;
pub mod cgroups;
pub mod facts;
pub mod io;
mod perf;
mod processor_counters;
mod processors;
pub mod sampling;
pub mod space;
pub mod symbols;
pub mod tasks;
mod threads;
pub mod tracepoints;
#[doc(hidden)]
pub mod untrusted;

pub use perf::listed;
pub use processor_counters::{
    ProcessorCounters, ProcessorTimes, processor_counters, waited_for_processors_ns,
};
pub use processors::{ProcessorUse, processor_mhz, processor_temperature_c};
pub use threads::thread_times;
