//! Threads with names: those of the standard library.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use crate::{Current, Key, current, stand_on, wake};

/// Starts a thread that no other thread waits for.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let entrance = Entrance::announce(name);
    let body = move || {
        let player = entrance.map(Entrance::enter);
        body();
        drop(player);
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}

/// As [`thread::scope`]: threads that may borrow, and have ended when this returns.
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
    thread::scope(|scope| {
        let scope = Scope { scope, left: Arc::new(AtomicUsize::new(0)) };
        body(&scope)
    })
}

/// Where scoped threads are started.
#[derive(Debug)]
pub struct Scope<'scope, 'env> {
    scope: &'scope thread::Scope<'scope, 'env>,
    /// Threads that have not ended, on a stage.
    left: Arc<AtomicUsize>,
}

/// A thread that will end.
#[derive(Debug)]
pub struct Joining<'scope, T> {
    thread: ScopedJoinHandle<'scope, T>,
    /// 0 when it has ended, on a stage.
    ended: Arc<AtomicUsize>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread.
    pub fn spawn<T: Send + 'scope>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<Joining<'scope, T>> {
        let entrance = Entrance::announce(name);
        let ended = Arc::new(AtomicUsize::new(usize::from(entrance.is_some())));
        let counts = [Arc::clone(&self.left), Arc::clone(&ended)];
        if entrance.is_some() {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        let body = move || {
            let player = entrance.map(Entrance::enter).map(|player| (Counts(counts), player));
            let result = body();
            drop(player);
            result
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn_scoped(self.scope, body)?;
        Ok(Joining { thread, ended })
    }
}

/// On a stage the others need their turns to come to their ends.
impl Drop for Scope<'_, '_> {
    fn drop(&mut self) {
        let Some(stage) = current() else { return };
        if thread::panicking() {
            stage.0.give_up();
        } else {
            wait_for_none(&stage, &self.left);
        }
    }
}

impl<T> Joining<'_, T> {
    /// Waits for its end.
    ///
    /// # Errors
    /// It has panicked.
    pub fn join(self) -> thread::Result<T> {
        if let Some(stage) = current() {
            wait_for_none(&stage, &self.ended);
        }
        self.thread.join()
    }
}

fn wait_for_none(stage: &Current, left: &Arc<AtomicUsize>) {
    let attempt = || (left.load(Ordering::Relaxed) == 0).then_some(());
    stage.wait_for((Key::of(left), "the end of a thread"), None, attempt);
}

/// A thread that is to stand on the stage of the one that starts it.
struct Entrance {
    stage: Current,
    number: usize,
}

/// It stands there; dropped, it leaves.
struct Player(Current);

/// Counted down when the thread ends: dropped before its [`Player`], who then has the last word.
struct Counts([Arc<AtomicUsize>; 2]);

impl Entrance {
    fn announce(name: &str) -> Option<Self> {
        current().map(|stage| Self { number: stage.0.announce(name), stage })
    }

    fn enter(self) -> Player {
        stand_on(Some(Arc::clone(&self.stage.0)));
        self.stage.0.enter(self.number);
        Player(self.stage)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.0.give_up();
        }
        self.0.0.leave();
        stand_on(None);
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
            wake(Key::of(count));
        }
    }
}
