//! Threads, hand-overs and waits, which a simulation may play on a stage of its own.
//!
//! Code with rules takes its time, its disks and its chances as arguments. What several threads of
//! it wait for besides, a queue, a free buffer, another thread, a while, goes through this crate:
//! to the operating system, unless the thread stands on a [`Stage`]. There one thread runs at a
//! time, the stage says which, and time passes only when all of them wait: one seed, one order of
//! events, and threads that wait for each other are seen at once.

mod channel;
pub mod sync;
mod threads;
mod watched;

use core::cell::RefCell;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

pub use channel::{Receiver, Sender, channel};
pub use threads::{Joining, Scope, scope, spawn};
pub use watched::Watched;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Decides which of the threads on it runs, and what time it is.
pub trait Stage: fmt::Debug + Send + Sync {
    /// The running thread may be interrupted here.
    fn pass(&self);

    /// The running thread waits until another thread wakes those that wait for `key`, or for so
    /// long; it may go on sooner. `what` is reported where threads wait for each other.
    fn wait(&self, key: Key, what: &'static str, timeout: Option<Duration>);

    /// Threads that wait for `key` look again.
    fn wake(&self, key: Key);

    /// Time since the beginning, in nanoseconds.
    fn now_ns(&self) -> i64;

    /// The running thread is about to start another one: its number.
    fn announce(&self, name: &str) -> usize;

    /// The first thing that a new thread does: it waits for its turn.
    fn enter(&self, number: usize);

    /// The last thing that it does.
    fn leave(&self);

    /// The running thread has panicked, and no thread needs to wait for a turn any more.
    fn give_up(&self);
}

/// What threads wait for: something that both sides have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(usize);

impl Key {
    /// A thread that waits for this is never woken.
    pub const NONE: Self = Self(0);

    /// The address of what both have.
    pub fn of<T>(shared: &Arc<T>) -> Self {
        Self(Arc::as_ptr(shared).addr())
    }
}

thread_local! {
    static STAGE: RefCell<Option<Arc<dyn Stage>>> = const { RefCell::new(None) };
}

/// The stage that this thread stands on.
#[derive(Clone, Debug)]
pub struct Current(Arc<dyn Stage>);

/// The stage that this thread stands on; `None` outside of simulations.
#[inline]
pub fn current() -> Option<Current> {
    STAGE.with_borrow(|stage| stage.clone().map(Current))
}

/// This thread stands on `stage` from now on, or on none.
pub fn stand_on(stage: Option<Arc<dyn Stage>>) {
    STAGE.set(stage);
}

/// Threads that wait for `key` look again; nothing outside of simulations.
#[inline]
pub fn wake(key: Key) {
    STAGE.with_borrow(|stage| {
        if let Some(stage) = stage {
            stage.wake(key);
        }
    });
}

/// Another thread may go on here, and a moment passes; nothing outside of simulations.
pub fn pass() {
    if let Some(Current(stage)) = current() {
        stage.pass();
    }
}

/// Waits for a lock. What a thread left that panicked meanwhile is taken as it is: a release ends
/// with its first panic, and a test is to show that one, not what followed from it.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does nothing for about so long.
pub fn sleep(time: Duration) {
    match current() {
        Some(stage) => stage.wait_until(stage.0.now_ns().saturating_add_unsigned(nanos(time))),
        None => std::thread::park_timeout(time),
    }
}

impl Current {
    /// Time since the beginning, in nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.0.now_ns()
    }

    /// Tries until something comes of it, woken by `key`, or the time is over.
    pub fn wait_for<T>(
        &self,
        (key, what): (Key, &'static str),
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.0.pass();
        let until_ns =
            timeout.map(|timeout| self.0.now_ns().saturating_add_unsigned(nanos(timeout)));
        loop {
            if let Some(found) = attempt() {
                return Some(found);
            }
            let left_ns = until_ns.map(|until_ns| until_ns.saturating_sub(self.0.now_ns()));
            if left_ns.is_some_and(|left_ns| left_ns <= 0) {
                return None;
            }
            let left = left_ns.map(|left_ns| Duration::from_nanos(left_ns.unsigned_abs()));
            self.0.wait(key, what, left);
        }
    }

    /// Waits for a moment.
    pub fn wait_until(&self, ns: i64) {
        loop {
            let left_ns = ns.saturating_sub(self.0.now_ns());
            if left_ns <= 0 {
                return;
            }
            self.0.wait(Key::NONE, "time", Some(Duration::from_nanos(left_ns.unsigned_abs())));
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
