//! The recording job: from a source of packets to acknowledged stripes and an index of their
//! sessions.
//!
//! Three threads (and one for each further queue) and two hand-overs, each bounded; the process of
//! the indexer makes session rows and encodes closed segments (ARCHITECTURE.md, A packet's way):
//!
//! ```text
//! source -> intake -- filled column --> ring writer -- sealed column, read only --> indexer
//!             ^  (1 copy)                   |    ^                                   |
//!             +---------- pool <------------+    +---------- INDEX pieces -----------+
//! ```
//!
//! Intake copies each packet once into an open column and does nothing else. The pool is the memory
//! between capture and disk: when it is empty a live packet is a writer drop, counted and stored as
//! a gap, while a file waits. The indexer may fall behind by half of the pool: then it first looks
//! for no names, and what is beyond that is indexed when load falls. Recording outranks indexing.
//!
//! Invariant, asserted at the end of every run: per interface, offered = stored + cut + copies +
//! kernel drops + writer drops + in flight.

mod backlog;
mod caretakers;
mod claim;
mod columns;
mod common;
mod control;
mod covered;
mod discards;
mod ending;
mod error;
mod expiry;
mod feed;
mod index_directory;
mod index_parts;
mod index_queue;
mod indexer;
mod indexing;
mod intake;
mod job;
mod late;
mod ledger;
mod links;
mod members;
mod memory;
mod opening;
mod options;
mod patrol;
mod pipeline;
mod progress;
mod queues;
mod read_back;
#[cfg(test)]
mod recorded;
mod report;
mod resilver;
mod returns;
mod ring;
mod segment;
mod settled;
mod settling;
mod sources;
mod spares;
mod status;
mod storage;
mod succession;
mod task;
mod waits;
mod watchdog;
mod way;
mod writing;

pub use ::indexer::GaveWay;
pub use ::recording::{
    Account, Change, Comeback, HandOver, Loss, MemberChange, Progress, QueueAccount,
};
pub use ::selection::{Class, ClassError, Keep, TakeOver, Taken};
pub use control::Control;
pub use error::Error;
pub use events::{DiskWatch, Disks, Event, EventKind, Headroom, Level, SlowLimit, SlowWrite};
pub use job::{Ground, record, record_on};
pub use options::{Discard, Input, MaxAge, Options, Queues, Way};
pub use report::Report;
pub use settled::{Held, Settled};
pub use storage::{OpenedDevice, Storage};
