//! What threads share and wait by: that of the standard library. Named in one place, so that the
//! crate `schedules` can put in its place what tries the orders in which threads may run.

pub use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak, atomic, mpsc,
};
pub use std::thread;
