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

use crate::board::Board;
use crate::course::{BATCH, Limits, Tally};
use crate::part::{Fault, Part, Said};
use crate::ranked::Ranked;

/// The merge looks at deadlines, and whether the user has had enough, so often at least.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

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
    let board = Board::new(sensors, asking.limits, asking.clock);
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
        board.lock().end();
        board.wake_all();
        taken.map(|()| board.lock().parts(asking.names, &merge.tally))
    })
}

/// The items that wait, and those that went out.
struct Merge<'a, T: Ranked> {
    asking: &'a Asking<'a>,
    board: &'a Board<'a, T>,
    tally: Tally<T::Key>,
    is_enough: bool,
}

impl<'a, T: Ranked> Merge<'a, T> {
    fn new(asking: &'a Asking<'a>, board: &'a Board<'a, T>) -> Self {
        Self { asking, board, tally: Tally::new(asking.names.len()), is_enough: false }
    }

    fn run<E>(
        &mut self,
        start: &dyn Fn(usize),
        take: &mut dyn FnMut(Event<T>) -> Result<Taken, E>,
    ) -> Result<(), E> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let late = self.board.lock().look(self.board.now_ns());
            self.board.wake(late.left);
            late.again.into_iter().for_each(start);
            if (self.asking.is_stopped)() {
                return Ok(());
            }
            let is_done = self.board.lock().fill(self.board.now_ns(), &mut batch);
            self.board.wake(batch.iter().map(|(sensor, ..)| *sensor));
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
                self.tally.count(sensor, key);
            }
        }
    }

    fn wait(&self) {
        let limits = self.asking.limits;
        let patience = limits.patience.unwrap_or(LOOK_EVERY);
        let most = LOOK_EVERY.min(limits.hedge).min(patience);
        self.board.wait(most.max(Duration::from_millis(1)));
    }
}

#[cfg(test)]
mod tests;
