//! From a bare machine to a recording service: which interfaces, which disks or folders, how they
//! are measured, the shape of the volume, its configuration, the service, and the first session.
//!
//! ```text
//! Answers (flags) --+
//! Machine (looks) --+--> walk(): eight steps, each proposed from what was seen, answered by a
//! Operator (asked) -+            flag or a question, then done by a verb of the program
//! ```
//!
//! What is proposed, in which order and in which words is decided here, by functions of what was
//! seen. Looking is behind [`Machine`], asking and doing behind [`Operator`], so that tests make up
//! both. A step is done by the verb that does it alone (`qualify`, `create`, `serve token create`,
//! `config check`): [`Operator::run`] takes its words.
//!
//! Not here: whether a device may be written to, which `guard` decides, each time anew.

mod advice;
mod answers;
mod asking;
mod choose;
mod config;
mod ending;
mod geometry;
mod here;
mod machine;
mod make;
mod serve;
mod steps;
mod storage;
mod traffic;
mod typed;
mod walk;

pub use advice::{AdviceError, advice};
pub use answers::{Answers, Measure};
pub use ending::Ending;
pub use here::Here;
pub use machine::{
    Counted, Disk, Folder, Machine, Manager, Operator, Places, Rights, Volume, Words,
};
pub use traffic::Seen;
pub use typed::Typed;
pub use walk::walk;
