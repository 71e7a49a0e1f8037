//! Packets out: pcapng or pcap, in the order of time, hashed on the way.
//!
//! [`Merger`] brings the packets of many pieces into one order of time, in bounded memory.
//! [`Outputs`] writes them to a [`Target`]: one pcapng section, one pcap file, one for each link
//! type, or one for each session.
//!
//! Called by `extract`. Not here: which packets, and the manifest of what was written.

mod error;
mod merge;
mod output;
mod target;

pub use error::Error;
pub use merge::{Emit, MergeMemory, Merger};
pub use output::{Contents, Dressed, Finished, Outputs, describe};
pub use target::{OpenOutput, OpenSession, SessionStart, Target};
