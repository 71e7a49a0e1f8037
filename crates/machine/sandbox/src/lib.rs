//! Processes that may die: how they are started, what they are handed, and how they end.
//!
//! A recorder gives up the right to start programs, and yet a child of it that died has to be
//! started again. So a *launcher* is started first, while the process still may: a small process
//! that waits at a private socket, starts the programs that were named to it at the beginning and
//! no others, hands them descriptors, and reports how they ended. A process that gives up nothing
//! starts the same children directly.
//!
//! ```text
//! recorder ---- socket: start, kill ----> launcher ---- fork, exec ----> child
//!     ^ \------ leash: one a child ---------/  ^ \------ SIGKILL ---------^
//!     +-------- pidfd, how it ended ---------+   (parent's death, leash closed)
//! ```
//!
//! No process outlives the one above: the kernel kills the launcher when the recorder is gone and
//! children when the launcher is gone, and each of them also sees its socket closed. Every wait has
//! a deadline, but those of a launcher and of a child for the one who started it.
//!
//! A program of others that reads packets ([`decode()`]) is started confined, or not at all.
//!
//! And what they give up for good: [`confine_recorder`], [`confine_indexer`], [`confine_query`],
//! [`confine_service`].
//!
//! Not here: what a child does (`indexer`), and when it is started again (`record`).

pub mod attempts;
mod child;
mod confine;
mod deadline;
mod decode;
mod direct;
mod ended;
mod error;
mod handed;
mod launcher;
mod message;
mod program;
mod serve;
mod socket;
mod start;

pub use child::Child;
pub use confine::{
    IndexerLimits, Notes, QueryLimits, RecorderRights, confine_indexer, confine_query,
    confine_recorder, confine_service, prevent_dumps,
};
pub use decode::decode;
pub use direct::spawn;
pub use ended::{Ended, How};
pub use error::Error;
pub use handed::{Handed, handed};
pub use launcher::Launcher;
pub use program::{DESCRIPTORS_MAX, Program, Request};
pub use serve::serve;
