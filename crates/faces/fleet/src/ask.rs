//! All sensors asked at once, and their answers merged by their keys.
//!
//! An item goes out when no sensor can bring an earlier one: each has one waiting, or has ended, or
//! was left behind. Who takes them is told when there is nothing to do, so that what was shown so
//! far can be flushed.

use core::fmt;
use core::time::Duration;

use stage::sync::Arc;
use stage::sync::atomic::{AtomicBool, Ordering};
use units::Clock;

use crate::board::{Board, Feed};
use crate::part::{Fault, Part, Said};
use crate::ranked::Ranked;

/// The merge looks at deadlines, and whether the user has had enough, so often at least.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So many items are taken out of the queues at a time.
const BATCH: usize = 64;

/// The way to the sensors.
pub trait Transport: Sync {
    /// What they are asked for.
    type Item: Ranked;

    /// Asks a sensor, and pushes what it says into the line as it comes. Called in a thread of its
    /// own, which nothing else of this sensor waits for.
    ///
    /// # Errors
    /// Why it was not heard to its end.
    fn ask(&self, sensor: usize, line: &Line<'_, Self::Item>) -> Result<Said, Fault>;
}

/// Bounds of a fan-out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A sensor that is waited for and says nothing for so long is left behind.
    pub silence: Duration,
    /// All of it takes no longer.
    pub deadline: Option<Duration>,
    /// A sensor that has not said who it is after so long is asked a second time.
    pub hedge: Duration,
    /// Order does not wait for a silent sensor longer than this; as long as for its answer without.
    pub patience: Option<Duration>,
    /// Memory of what waits, over all sensors.
    pub memory_bytes: usize,
}

/// Who is asked, and within which bounds.
pub struct Asking<'a> {
    /// Names of the sensors, by their numbers.
    pub names: &'a [String],
    /// Bounds.
    pub limits: &'a Limits,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// The user has had enough.
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What happens to who takes items.
#[derive(Debug)]
pub enum Event<T> {
    /// The next one, of the sensor with this number.
    Item(usize, T),
    /// There is none for the moment.
    Idle,
}

/// What becomes of further items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// They are wanted.
    More,
    /// They are not, and the sensors are heard to their ends for what they say of their answers.
    Enough,
}

/// What an attempt is heard through.
pub struct Line<'b, T: Ranked> {
    board: &'b Board<'b, T>,
    sensor: usize,
    attempt: usize,
    over: Arc<AtomicBool>,
}

impl<T: Ranked> fmt::Debug for Line<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("sensor", &self.sensor).finish_non_exhaustive()
    }
}

impl<T: Ranked> Line<'_, T> {
    /// Raised when this attempt does not count any more: it is to end then.
    pub fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }

    /// It does not count any more.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The sensor is there, and goes on.
    ///
    /// # Errors
    /// [`Fault::Stopped`] where this attempt does not count any more.
    pub fn hear(&self) -> Result<(), Fault> {
        let counts = self.board.hear(self.sensor, self.attempt);
        if counts { Ok(()) } else { Err(Fault::Stopped) }
    }

    /// The next item of the sensor; waits while there is no room for it.
    ///
    /// # Errors
    /// [`Fault::Stopped`] where this attempt does not count any more.
    pub fn push(&self, item: T) -> Result<(), Fault> {
        self.board.push((self.sensor, self.attempt), item)
    }
}

/// Asks all sensors, and calls `take` with what they bring, by its keys; of the same key the one of
/// the earlier sensor comes first. Returns when each has ended or was left behind.
///
/// # Errors
/// That of `take`.
pub fn ask<T: Transport, E>(
    transport: &T,
    asking: &Asking<'_>,
    take: &mut dyn FnMut(Event<T::Item>) -> Result<Taken, E>,
) -> Result<Vec<Part>, E> {
    let sensors = asking.names.len();
    let board = Board::new(sensors, asking.limits.memory_bytes, asking.clock);
    stage::scope(|scope| {
        let start = |sensor: usize| {
            let (attempt, over) = board.attempt(sensor);
            let board = &board;
            let body = move || {
                let line = Line { board, sensor, attempt, over };
                board.ended(sensor, attempt, transport.ask(sensor, &line));
            };
            if let Err(error) = scope.spawn("sensor", body) {
                let why = format!("this machine starts no thread for it: {error}");
                board.ended(sensor, attempt, Err(Fault::Refused(why)));
            }
        };
        (0..sensors).for_each(start);
        let mut merge = Merge::new(asking, &board);
        let taken = merge.run(&start, take);
        merge.end();
        taken.map(|()| merge.parts())
    })
}

/// The items that wait, and those that went out.
struct Merge<'a, T: Ranked> {
    asking: &'a Asking<'a>,
    board: &'a Board<'a, T>,
    begun_ns: i64,
    /// Place of the last one that went out.
    last: Option<T::Key>,
    /// What went out of each sensor, and how much of that too late.
    counts: Vec<(u64, u64)>,
    is_enough: bool,
}

impl<'a, T: Ranked> Merge<'a, T> {
    fn new(asking: &'a Asking<'a>, board: &'a Board<'a, T>) -> Self {
        let begun_ns = asking.clock.boottime_ns();
        let counts = vec![(0, 0); asking.names.len()];
        Self { asking, board, begun_ns, last: None, counts, is_enough: false }
    }

    fn run<E>(
        &mut self,
        start: &dyn Fn(usize),
        take: &mut dyn FnMut(Event<T>) -> Result<Taken, E>,
    ) -> Result<(), E> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            for sensor in self.look() {
                start(sensor);
            }
            if (self.asking.is_stopped)() {
                return Ok(());
            }
            let is_done = self.fill(&mut batch);
            if batch.is_empty() {
                if is_done {
                    return Ok(());
                }
                take(Event::Idle)?;
                self.wait();
            }
            for (sensor, key, item) in batch.drain(..) {
                if self.is_enough {
                    continue;
                }
                if take(Event::Item(sensor, item))? == Taken::Enough {
                    self.is_enough = true;
                    continue;
                }
                let is_late = self.last.as_ref().is_some_and(|last| key < *last);
                let (count, late) = self.counts.get_mut(sensor).expect("each has one");
                *count += 1;
                *late += u64::from(is_late);
                if !is_late {
                    self.last = Some(key);
                }
            }
        }
    }

    /// Leaves behind who is too late; those that are to be asked once more.
    fn look(&self) -> Vec<usize> {
        let now_ns = self.asking.clock.boottime_ns();
        let limits = self.asking.limits;
        let passed_ns = now_ns.saturating_sub(self.begun_ns);
        let is_over = limits.deadline.filter(|deadline| passed_ns >= units::nanos(*deadline));
        let mut feeds = self.board.lock();
        let mut again = Vec::new();
        for (sensor, feed) in feeds.iter_mut().enumerate().filter(|(_, feed)| !feed.is_done()) {
            let silent_ns = now_ns.saturating_sub(feed.since_ns);
            let is_silent = feed.queue.is_empty() && silent_ns >= units::nanos(limits.silence);
            let why = match (is_over, is_silent) {
                (Some(deadline), _) => format!("it was not done within {}", in_words(deadline)),
                (_, true) if feed.was_heard() => {
                    format!("it said nothing for {}", in_words(limits.silence))
                }
                (_, true) => format!("it did not answer within {}", in_words(limits.silence)),
                (None, false) => {
                    if feed.wants_another(now_ns, limits.hedge) {
                        again.push(sensor);
                    }
                    continue;
                }
            };
            feed.end(Err(Fault::Slow(why)));
            self.board.wake(sensor);
        }
        again
    }

    /// Takes out what can go; whether nothing further comes.
    fn fill(&self, batch: &mut Vec<(usize, T::Key, T)>) -> bool {
        let now_ns = self.asking.clock.boottime_ns();
        let mut feeds = self.board.lock();
        while batch.len() < BATCH {
            if feeds.iter().any(|feed| self.is_waited_for(feed, now_ns)) {
                return false;
            }
            let heads = feeds.iter().enumerate();
            let heads = heads.filter_map(|(sensor, feed)| Some((&feed.queue.front()?.0, sensor)));
            let Some((_, sensor)) = heads.min() else {
                return feeds.iter().all(Feed::is_done);
            };
            let feed = feeds.get_mut(sensor).expect("it was found");
            if let Some((key, item)) = feed.pop(now_ns) {
                batch.push((sensor, key, item));
            }
            self.board.wake(sensor);
        }
        false
    }

    /// Something earlier may come from it.
    fn is_waited_for(&self, feed: &Feed<T>, now_ns: i64) -> bool {
        let silent_ns = now_ns.saturating_sub(feed.since_ns);
        let is_late =
            self.asking.limits.patience.is_some_and(|most| silent_ns >= units::nanos(most));
        feed.queue.is_empty() && !feed.is_done() && !is_late
    }

    fn wait(&self) {
        let feeds = self.board.lock();
        let patience = self.asking.limits.patience.unwrap_or(LOOK_EVERY);
        let most = LOOK_EVERY.min(self.asking.limits.hedge).min(patience);
        self.board.wait(feeds, most.max(Duration::from_millis(1)));
    }

    /// Nothing more is taken: who is still heard is told.
    fn end(&self) {
        let mut feeds = self.board.lock();
        for (sensor, feed) in feeds.iter_mut().enumerate() {
            feed.end(Err(Fault::Stopped));
            self.board.wake(sensor);
        }
    }

    fn parts(&self) -> Vec<Part> {
        let feeds = self.board.lock();
        let each = self.asking.names.iter().zip(&self.counts).zip(feeds.iter());
        let part = |((name, &(count, late)), feed): ((&String, &(u64, u64)), &Feed<T>)| Part {
            sensor: name.clone(),
            count,
            late,
            outcome: feed.outcome.clone().unwrap_or(Err(Fault::Stopped)),
        };
        each.map(part).collect()
    }
}

fn in_words(time: Duration) -> String {
    page::text::duration(units::nanos(time))
}

#[cfg(test)]
mod tests;
