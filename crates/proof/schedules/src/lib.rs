//! The production code by which threads of the recorder share memory, hand over and wait, compiled
//! once more with `shuttle` in place of the standard library's locks, queues and threads: it runs
//! one thread at a time, tries many orders of them, and names the one in which no thread goes on.
//!
//! The files are those of `stage`, `device` and `record`; what they name of the standard library
//! comes from `stage::sync`, which is here [`sync`]. Waits have no end here, so who relies on one
//! is found, too. What they name of their own crates and no thread waits for has a stand-in here.
//! Nothing but its own tests uses this crate.

// Compiled as a test of its own it would have the tests of those files.
#![cfg(not(test))]

// To the files that are taken from other crates this one is `stage` and `device`.
extern crate self as device;
extern crate self as stage;

/// What `stage::sync` names elsewhere.
pub mod sync {
    pub use shuttle::sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak, atomic, mpsc,
    };
    pub use shuttle::thread;
}

#[path = "../../../recorder/record/src/claim.rs"]
mod claim;
#[path = "../../../recorder/record/src/control.rs"]
mod control;
pub mod disks;
#[path = "../../../recorder/record/src/index_queue.rs"]
mod index_queue;
#[path = "../../../storage/device/src/jobs.rs"]
mod jobs;
#[path = "../../../recorder/record/src/ledger.rs"]
mod ledger;
#[path = "../../../storage/device/src/pool.rs"]
mod pool;
pub mod recorder;
pub mod scenes;
#[path = "../../../base/stage/src/lib.rs"]
mod staged;
#[path = "../../../recorder/record/src/status.rs"]
mod status;
#[path = "../../../recorder/record/src/waits.rs"]
mod waits;
#[path = "../../../recorder/record/src/way.rs"]
mod way;

pub use pool::Shared;
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

/// Stands for what the ring writer is asked to do.
mod task {
    #[derive(Debug)]
    pub(crate) struct Task(pub(crate) u8);
}

/// Stands for what is stored too old to be given out.
mod expiry {
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Withheld;
}

/// Stands for what became of members.
mod members {
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Changes;

    impl Changes {
        pub(crate) fn new(_: Vec<recording::MemberChange>) -> Self {
            Self
        }
    }

    pub(crate) fn at_start(
        _: &volume::Membership,
        _: &writer::Recovery,
    ) -> Vec<recording::MemberChange> {
        Vec::new()
    }
}
