//! Many recorders asked at once: who they are, a fan-out with deadlines, one answer in one order,
//! and one statement of what is missing from it.
//!
//! Each sensor is asked in threads of its own ([`ask`]) over a [`Transport`], which the caller
//! brings along, as it does the clock: nothing here knows a network. What they bring waits in
//! queues of bounded memory and is merged by its key. A sensor that says nothing for too long is
//! left behind and named; one that does not even say who it is, is asked a second time meanwhile.
//!
//! Invariants: a whole is complete only where every sensor said so; no sensor is left out of the
//! statement; what is in order at every sensor is in order in the whole, unless the caller set a
//! bound to how long order is waited for. Not here: sockets, files and flags.

mod ask;
mod board;
mod course;
mod manifest;
mod marks;
mod packets;
mod pages;
mod part;
mod ranked;
mod row;
mod sensors;
mod shown;
mod standing;

pub use ask::{Asking, Event, LOOK_EVERY, Line, Taken, Transport, ask};
pub use course::{Course, Late, Limits, Pushed, Tally};
pub use manifest::{Extracted, manifest_json};
pub use marks::{Marks, Sighting};
pub use packets::{Block, Merged, NoPcapng, Splitter};
pub use pages::{Fetch, Page, page_rows, pages, pause_after};
pub use part::{Condition, Fault, Part, Said, Whole};
pub use ranked::{Identified, Ranked};
pub use row::Row;
pub use sensors::{NoSensors, SENSORS_MAX, Sensor, keys, read};
pub use shown::Form;
pub use standing::{ClockOffset, Report, Standing, reports, reports_json};
