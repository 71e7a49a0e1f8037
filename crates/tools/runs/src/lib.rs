//! Repeated runs: how long commands take, or how fast the machine is, and why runs differ.
//!
//! [`contest`] runs subjects in turn, so that what drifts meets all of them alike; [`judge`] says
//! of each series what it is like: median, width, outliers, two modes and what separates them,
//! changes, drift. [`against`] holds a series against one of another day. What is run is given:
//! [`Commands`] are programs, [`Machine`] is the work that shows what processors, memory and a disk
//! do, and tests make up their own. All that statistics do is in the crate `statistics`.
//!
//! Nothing here prints or writes JSON; clock and chance are arguments.

mod against;
mod beside;
mod commands;
mod contest;
mod error;
mod former;
mod judge;
mod machine;
mod plan;
mod run;

pub use against::{Against, Verdict, against};
pub use commands::{Command, Commands, Surroundings};
pub use contest::{Contest, Going, Series, contest};
pub use error::Error;
pub use former::{Former, FormerError, parse_former};
pub use host::{CpuTime, Taken};
pub use judge::{EFFECT_LEAST, Judged, Part, TwoModes, judge};
pub use machine::{Disk, Figure, Machine};
pub use plan::{Order, Plan, Rounds};
pub use run::{Fact, Parameter, Ran, Run, Runner, Setting, Subject, Unit};
