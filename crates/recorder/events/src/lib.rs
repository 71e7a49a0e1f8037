//! What happens while a recording goes on, said when it happens; and what its disks do meanwhile.
//!
//! The threads of a recording put what they learn into one stream of [`Events`]; a [`Speaker`]
//! decides what of it is said when. [`Watching`] looks at the devices of the members: slow writes,
//! members that give less than was promised, traffic near what they guarantee ([`Headroom`]). Each
//! is an event, too. [`ReachBack`] says how far the ring reaches at the present rate, and
//! [`ClockWatch`] and [`ClockSteps`] what becomes of the clock.
//!
//! Called by `record`. Not here: what becomes of packets (`record`), how events are shown.

mod headroom;
mod reach;
mod stamping;
mod steps;
mod stream;
mod watch;

pub use headroom::{Headroom, Level};
pub use reach::ReachBack;
pub use stamping::ClockWatch;
pub use steps::ClockSteps;
pub use stream::{Event, EventKind, Events, News, Speaker};
pub use watch::{DiskWatch, Disks, SlowLimit, SlowWrite, Watches, Watching};
