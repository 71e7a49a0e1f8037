//! What the threads of a fan-out share: a queue for each sensor, and who of its attempts counts.
//!
//! One lock for all: what is done under it takes no time. A producer waits for room in its own
//! queue, the merge for news of any. An attempt that does not count any more is told so by a flag,
//! which its transport looks at while it waits for the network.

use core::time::Duration;
use std::collections::VecDeque;

use stage::sync::atomic::{AtomicBool, Ordering};
use stage::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use units::Clock;

use crate::part::{Fault, Said};
use crate::ranked::Ranked;

/// A sensor is asked so often at most, until one of the attempts hears something.
pub(crate) const ATTEMPTS: usize = 2;

/// One sensor.
#[derive(Debug)]
pub(crate) struct Feed<T: Ranked> {
    pub(crate) queue: VecDeque<(T::Key, T)>,
    bytes: usize,
    /// Raised when an attempt does not count any more.
    over: Vec<Arc<AtomicBool>>,
    running: usize,
    /// The attempt that heard something first.
    winner: Option<usize>,
    begun_ns: i64,
    /// When it last said something, or was last waited for.
    pub(crate) since_ns: i64,
    pub(crate) outcome: Option<Result<Said, Fault>>,
    /// An attempt failed in a way that another may not.
    wants_another: bool,
}

impl<T: Ranked> Feed<T> {
    fn new(now_ns: i64) -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            over: Vec::new(),
            running: 0,
            winner: None,
            begun_ns: now_ns,
            since_ns: now_ns,
            outcome: None,
            wants_another: false,
        }
    }

    /// Nothing further comes.
    pub(crate) fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) fn end(&mut self, outcome: Result<Said, Fault>) {
        self.outcome.get_or_insert(outcome);
        self.over.iter().for_each(|over| over.store(true, Ordering::Relaxed));
    }

    pub(crate) fn pop(&mut self, now_ns: i64) -> Option<(T::Key, T)> {
        let (key, item) = self.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(item.bytes());
        // From now on it is waited for.
        if self.queue.is_empty() {
            self.since_ns = now_ns;
        }
        Some((key, item))
    }

    /// It has said something to an attempt, now; false where another one counts.
    fn hear(&mut self, attempt: usize, now_ns: i64) -> bool {
        if self.is_done() {
            return false;
        }
        let is_first = self.winner.is_none();
        let winner = *self.winner.get_or_insert(attempt);
        if is_first {
            let others = self.over.iter().enumerate().filter(|(number, _)| *number != attempt);
            others.for_each(|(_, over)| over.store(true, Ordering::Relaxed));
        }
        self.since_ns = now_ns;
        winner == attempt
    }

    /// Another attempt is due: it does not say who it is, or could not be reached.
    pub(crate) fn wants_another(&self, now_ns: i64, hedge: Duration) -> bool {
        let is_due = now_ns.saturating_sub(self.begun_ns) >= units::nanos(hedge);
        let may = self.winner.is_none() && !self.is_done() && self.over.len() < ATTEMPTS;
        may && (is_due || self.wants_another)
    }

    /// It has said who it is.
    pub(crate) fn was_heard(&self) -> bool {
        self.winner.is_some()
    }
}

/// What the threads share.
pub(crate) struct Board<'c, T: Ranked> {
    feeds: Mutex<Vec<Feed<T>>>,
    news: Condvar,
    room: Vec<Condvar>,
    clock: &'c dyn Clock,
    /// Memory of one queue.
    bytes_max: usize,
}

impl<T: Ranked> core::fmt::Debug for Board<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Board").field("sensors", &self.room.len()).finish_non_exhaustive()
    }
}

impl<'c, T: Ranked> Board<'c, T> {
    pub(crate) fn new(sensors: usize, memory_bytes: usize, clock: &'c dyn Clock) -> Self {
        let now_ns = clock.boottime_ns();
        Self {
            feeds: Mutex::new((0..sensors).map(|_| Feed::new(now_ns)).collect()),
            news: Condvar::new(),
            room: (0..sensors).map(|_| Condvar::new()).collect(),
            clock,
            bytes_max: memory_bytes / sensors.max(1),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Feed<T>>> {
        stage::lock(&self.feeds)
    }

    /// Waits for news, so long at most.
    pub(crate) fn wait(&self, feeds: MutexGuard<'_, Vec<Feed<T>>>, most: Duration) {
        drop(self.news.wait_timeout(feeds, most));
    }

    /// Producers look again.
    pub(crate) fn wake(&self, sensor: usize) {
        self.room.iter().skip(sensor).take(1).for_each(Condvar::notify_all);
    }

    /// A further attempt; its number and its flag.
    pub(crate) fn attempt(&self, sensor: usize) -> (usize, Arc<AtomicBool>) {
        let mut feeds = self.lock();
        let feed = feed(&mut feeds, sensor);
        let over = Arc::new(AtomicBool::new(false));
        feed.over.push(Arc::clone(&over));
        feed.running += 1;
        feed.wants_another = false;
        (feed.over.len() - 1, over)
    }

    /// The sensor has said something to this attempt; false where another one counts.
    pub(crate) fn hear(&self, sensor: usize, attempt: usize) -> bool {
        feed(&mut self.lock(), sensor).hear(attempt, self.clock.boottime_ns())
    }

    /// Puts an item into the queue of a sensor, when there is room.
    pub(crate) fn push(&self, (sensor, attempt): (usize, usize), item: T) -> Result<(), Fault> {
        let bytes = item.bytes();
        let mut feeds = self.lock();
        if !feed(&mut feeds, sensor).hear(attempt, self.clock.boottime_ns()) {
            return Err(Fault::Stopped);
        }
        loop {
            let feed = feed(&mut feeds, sensor);
            if feed.is_done() {
                return Err(Fault::Stopped);
            }
            // One is always taken, however large.
            if feed.queue.is_empty() || feed.bytes.saturating_add(bytes) <= self.bytes_max {
                let was_empty = feed.queue.is_empty();
                feed.bytes = feed.bytes.saturating_add(bytes);
                feed.since_ns = self.clock.boottime_ns();
                feed.queue.push_back((item.key(), item));
                if was_empty {
                    self.news.notify_one();
                }
                return Ok(());
            }
            let room = self.room.get(sensor).expect("each sensor has one");
            feeds = room.wait(feeds).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// An attempt has come to its end.
    pub(crate) fn ended(&self, sensor: usize, attempt: usize, outcome: Result<Said, Fault>) {
        let mut feeds = self.lock();
        let feed = feed(&mut feeds, sensor);
        feed.running -= 1;
        let counts = feed.winner.is_none_or(|winner| winner == attempt);
        if feed.is_done() || !counts {
            return;
        }
        feed.since_ns = self.clock.boottime_ns();
        let may_again = feed.winner.is_none() && feed.over.len() < ATTEMPTS;
        match outcome {
            Err(fault) if fault.is_passing() && may_again => feed.wants_another = true,
            // The other one may still hear something.
            Err(fault) if fault.is_passing() && feed.winner.is_none() && feed.running > 0 => {}
            outcome => feed.end(outcome),
        }
        self.news.notify_one();
    }
}

fn feed<T: Ranked>(feeds: &mut [Feed<T>], sensor: usize) -> &mut Feed<T> {
    feeds.get_mut(sensor).expect("each sensor has one")
}
