//! Blocks out: every byte that a volume writes to or reads from a member goes through this crate.
//!
//! [`open`] gives the best writer that the machine allows, [`open_read`] a reader that takes no
//! lock and never writes. [`Modelled`] is a disk in memory, with a volatile cache, moving parts and
//! faults, on the virtual time of a [`Timeline`]: for tests, simulation and qualification;
//! [`Latched`], [`Faulty`], [`Metered`] and [`Watched`] wrap any device. No call waits longer than
//! [`PATIENCE`] for a disk that hangs. Not here: what the bytes
//! mean, and whether a target may be overwritten (`guard`).
//!
//! Invariants: offsets and lengths are multiples of [`ROW_SIZE`]; a buffer that the kernel may
//! still read is never given back to its [`Pool`]; after a failed write or sync nothing is written
//! any more.

mod batch;
mod beside;
mod bounce;
mod bounded;
mod clock;
mod create;
mod device;
mod discard;
mod error;
mod fault;
mod faulty;
mod guarded;
mod jobs;
mod latched;
mod medium;
mod metered;
mod modelled;
mod open;
mod patience;
mod places;
mod pool;
mod range_lock;
mod rings;
mod row;
mod storage;
mod target;
mod threads;
mod timeline;
mod uring;
mod watched;

pub use beside::side_by_side;
pub use bounded::{Bounded, ReadBudget};
pub use create::{CreateOptions, create_file, remove_file};
pub use device::{Completion, Device, LentRead, Read, ReadAt, Reading};
pub use discard::discard;
pub use error::Error;
pub use fault::{Fault, MUTATIONS, OPERATIONS, Operation, Rule};
pub use faulty::{FaultSwitch, Faulty};
pub use latched::Latched;
pub use medium::Crash;
pub use metered::{Meter, MeterReader, Metered};
pub use modelled::{Modelled, ProfileError, Timing, Work, ZoneProfile};
pub use open::{Options, is_open_for_writing, open, open_read};
pub use patience::{PATIENCE, hear_stop, patiently, silent_paths};
pub use places::{files_in, linked_devices};
pub use pool::{Ahead, Buffer, Pool, Shared, SharedPool, SharedPoolError};
pub use rings::reserve_rings;
pub use row::{ROW_SIZE, Row};
pub use storage::refuse_same_storage;
pub use target::lies_in_memory;
pub use timeline::Timeline;
pub use units::Histogram;
pub use watched::{Cell, Promise, SlowWrite, Watch, WatchReader, Watched};

use row::{assert_range, to_usize};
use units::number::to_u64;
