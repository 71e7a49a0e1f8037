//! Sessions out of sealed pieces, made by a worker that may die at any instant.
//!
//! What parses payload from the wire runs here, and in the product in a child process without
//! privileges: it sees sealed pieces, read-only, in memory that its owner shares; it keeps the
//! session tables; and it gives back segments of session rows as Parquet files. The owner (a
//! recording, or a reader that indexes on the way) holds what lies in the worker's hands, counts
//! what dies with it, and starts another one.
//!
//! ```text
//! owner                                           worker
//! Owner::push  -- StripeAt: where pieces lie -->  session tables of two runs
//!              <------------------- Taken ------
//! Owner::close -- Closing: which stripes ----->   rows -> Parquet, on threads of its own
//! Owner::poll  <-- Segment, its file -----------
//! ```
//!
//! Invariants: at most [`IN_HAND_MAX`] stripes are handed over at a time, and a piece's memory does
//! not change while it is; a segment is closed when all its stripes were answered; what comes back
//! is bounded and owed; a stripe that ended two workers is handed to no third.

/// Memory of a segment's rows at which its owner should close it.
pub const ROW_BYTES_MAX: u64 = 256 << 20;

/// What a worker needs besides: its program, stacks, buffers, and what an allocator keeps back.
const OTHER_BYTES: usize = 256 << 20;

/// Most memory that a worker takes for such sessions, besides what its owner shares with it: the
/// tables of both runs and of late stripes, the rows of two open segments and of one that is being
/// encoded, and its file.
pub fn memory_bytes_max(sessions: &session::Config) -> u64 {
    let tables = sessions.memory_bytes_max() + 2 * run::late(sessions).memory_bytes_max();
    let tables = u64::try_from(tables + OTHER_BYTES).unwrap_or(u64::MAX);
    tables.saturating_add(4 * ROW_BYTES_MAX)
}

mod around;
mod encoder;
mod faulty;
mod launch;
mod message;
mod owner;
mod played;
mod poison;
mod run;
mod suspects;
mod unite;
pub mod untrusted;
mod worker;

pub use around::{Around, Covered, Edges};
pub use faulty::{Fate, Faulty, Seen};
pub use launch::{Ended, InThread, Launch, Line, Process, Workers};
pub use message::{BEFORE_BYTES_MAX, PARQUET_BYTES_MAX};
pub use message::{Closing, GaveWay, Malformed, Rest, RunKind, Taken, Times};
pub use owner::{Death, Event, IN_HAND_MAX, Owner, Piece, SegmentsBefore, Setup, Stripe};
pub use played::{Played, Plays};
pub use poison::Poison;
pub use worker::{Memory, WorkerError, serve};
