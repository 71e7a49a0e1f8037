//! The production code by which threads of the recorder share memory, hand over and wait, compiled
//! once more with `shuttle` in place of the standard library's locks, queues and threads: it runs
//! one thread at a time, tries many orders of them, and names the one in which no thread goes on.
//!
//! The files are those of `stage`, `device` and `record`; what they name of the standard library
//! comes from `stage::sync`, which is here [`sync`]. Waits have no end here, so who relies on one
//! is found, too. Nothing but its own tests uses this crate.

// Compiled as a test of its own it would have the tests of those files.
#![cfg(not(test))]

// To the files that are taken from other crates this one is `stage`.
extern crate self as stage;

/// What `stage::sync` names elsewhere.
pub mod sync {
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};
    pub use shuttle::thread;
}

#[path = "../../../recorder/record/src/control.rs"]
mod control;
#[path = "../../../storage/device/src/pool.rs"]
mod pool;
pub mod scenes;
#[path = "../../../base/stage/src/lib.rs"]
mod staged;

pub use staged::*;
use units::number::to_u64;

/// Bytes of a row, as `device` has it.
const ROW_SIZE: usize = 4096;

/// The error of `device` that a pool may give.
#[derive(Debug)]
pub enum Error {
    /// There is no memory.
    Memory {
        /// So much was asked for.
        size_bytes: u64,
        /// What the system said.
        errno: i32,
    },
}
