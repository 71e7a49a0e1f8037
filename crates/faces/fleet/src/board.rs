//! What the threads of a fan-out share: its course, and what they wait for.
//!
//! One lock for all: what is done under it takes no time. A producer waits for room in its own
//! queue, the merge for news of any. An attempt that does not count any more is told so by a flag,
//! which its transport looks at while it waits for the network.

use core::time::Duration;

use stage::sync::atomic::AtomicBool;
use stage::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use units::Clock;

use crate::course::{Course, Limits, Pushed};
use crate::part::{Fault, Said};
use crate::ranked::Ranked;

/// What the threads share.
pub(crate) struct Board<'c, T: Ranked> {
    course: Mutex<Course<T>>,
    news: Condvar,
    room: Vec<Condvar>,
    clock: &'c dyn Clock,
}

impl<T: Ranked> core::fmt::Debug for Board<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Board").field("sensors", &self.room.len()).finish_non_exhaustive()
    }
}

impl<'c, T: Ranked> Board<'c, T> {
    pub(crate) fn new(sensors: usize, limits: &Limits, clock: &'c dyn Clock) -> Self {
        Self {
            course: Mutex::new(Course::new(sensors, limits, clock.boottime_ns())),
            news: Condvar::new(),
            room: (0..sensors).map(|_| Condvar::new()).collect(),
            clock,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Course<T>> {
        stage::lock(&self.course)
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.boottime_ns()
    }

    /// Waits for news, so long at most.
    pub(crate) fn wait(&self, most: Duration) {
        drop(self.news.wait_timeout(self.lock(), most));
    }

    /// Producers of these sensors look again.
    pub(crate) fn wake(&self, sensors: impl IntoIterator<Item = usize>) {
        let room = |sensor| self.room.get(sensor);
        sensors.into_iter().filter_map(room).for_each(Condvar::notify_all);
    }

    /// Producers of all sensors look again.
    pub(crate) fn wake_all(&self) {
        self.wake(0..self.room.len());
    }

    /// A further attempt; its number and its flag.
    pub(crate) fn attempt(&self, sensor: usize) -> (usize, Arc<AtomicBool>) {
        self.lock().attempt(sensor)
    }

    /// The sensor has said something to this attempt; false where another one counts.
    pub(crate) fn hear(&self, sensor: usize, attempt: usize) -> bool {
        self.lock().hear((sensor, attempt), self.now_ns())
    }

    /// Puts an item into the queue of a sensor, when there is room.
    pub(crate) fn push(&self, (sensor, attempt): (usize, usize), item: T) -> Result<(), Fault> {
        let mut course = self.lock();
        if !course.hear((sensor, attempt), self.now_ns()) {
            return Err(Fault::Stopped);
        }
        let mut next = item;
        loop {
            next = match course.push(sensor, next, self.now_ns()) {
                Pushed::First => {
                    self.news.notify_one();
                    return Ok(());
                }
                Pushed::Behind => return Ok(()),
                Pushed::Over => return Err(Fault::Stopped),
                Pushed::Full(item) => item,
            };
            let room = self.room.get(sensor).expect("each sensor has one");
            course = room.wait(course).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// An attempt has come to its end.
    pub(crate) fn ended(&self, sensor: usize, attempt: usize, outcome: Result<Said, Fault>) {
        self.lock().ended((sensor, attempt), outcome, self.now_ns());
        self.news.notify_one();
    }
}
