//! The rules of a fan-out, without threads, locks and clocks: which attempt counts, who is waited
//! for, asked again or left behind, and what goes out next.
//!
//! What happens is told together with its time. [`crate::ask()`] plays it with threads and a
//! network, the simulation of fleets with events. Nothing here looks at each sensor for each item:
//! who has something, and who is waited for, is kept in order.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use stage::sync::Arc;
use stage::sync::atomic::{AtomicBool, Ordering};

use crate::part::{Fault, Part, Said};
use crate::ranked::Ranked;

/// A sensor is asked so often at most, until one of the attempts hears something.
const ATTEMPTS: usize = 2;
/// So many items are taken out of the queues at a time.
pub(crate) const BATCH: usize = 64;

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

/// What became of an item.
#[derive(Debug)]
pub enum Pushed<T> {
    /// It waits for its turn. The sensor had nothing there before: something may go out now.
    First,
    /// It waits behind others of its sensor.
    Behind,
    /// There is no room for it before another one has gone out.
    Full(T),
    /// Nothing further is taken of this sensor.
    Over,
}

/// Who is late.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Late {
    /// To be asked once more.
    pub again: Vec<usize>,
    /// Left behind.
    pub left: Vec<usize>,
}

/// One sensor.
#[derive(Debug)]
struct Feed<T: Ranked> {
    queue: VecDeque<(T::Key, T)>,
    bytes: usize,
    /// Raised when an attempt does not count any more.
    over: Vec<Arc<AtomicBool>>,
    running: usize,
    /// The attempt that heard something first.
    winner: Option<usize>,
    /// When it last said something, or was last waited for.
    since_ns: i64,
    outcome: Option<Result<Said, Fault>>,
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
            since_ns: now_ns,
            outcome: None,
            wants_another: false,
        }
    }

    /// Nothing further comes.
    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    /// Something earlier than all that waits may come from it.
    fn is_waited_for(&self) -> bool {
        self.queue.is_empty() && !self.is_done()
    }

    fn end(&mut self, outcome: Result<Said, Fault>) {
        self.outcome.get_or_insert(outcome);
        self.over.iter().for_each(|over| over.store(true, Ordering::Relaxed));
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

    /// A further attempt may still count.
    fn may_again(&self) -> bool {
        self.winner.is_none() && !self.is_done() && self.over.len() < ATTEMPTS
    }
}

/// A fan-out under way.
#[derive(Debug)]
pub struct Course<T: Ranked> {
    limits: Limits,
    feeds: Vec<Feed<T>>,
    begun_ns: i64,
    /// Memory of one queue.
    bytes_max: usize,
    /// Sensors of which something waits, by its place.
    heads: BTreeSet<(T::Key, usize)>,
    /// Sensors that are waited for, by since when.
    waited: BTreeSet<(i64, usize)>,
    /// Nobody is late before.
    due_ns: i64,
}

impl<T: Ranked> Course<T> {
    /// Of so many sensors, begun now.
    pub fn new(sensors: usize, limits: &Limits, now_ns: i64) -> Self {
        Self {
            limits: limits.clone(),
            feeds: (0..sensors).map(|_| Feed::new(now_ns)).collect(),
            begun_ns: now_ns,
            bytes_max: limits.memory_bytes / sensors.max(1),
            heads: BTreeSet::new(),
            waited: (0..sensors).map(|sensor| (now_ns, sensor)).collect(),
            due_ns: now_ns,
        }
    }

    /// What a change does to whether a sensor is waited for.
    fn change<R>(&mut self, sensor: usize, work: impl FnOnce(&mut Feed<T>) -> R) -> R {
        let feed = self.feeds.get_mut(sensor).expect("each sensor has one");
        let before = feed.is_waited_for().then_some((feed.since_ns, sensor));
        let done = work(feed);
        let after = feed.is_waited_for().then_some((feed.since_ns, sensor));
        if before != after {
            if let Some(before) = before {
                self.waited.remove(&before);
            }
            self.waited.extend(after);
        }
        done
    }

    /// A further attempt; its number and the flag that tells that it does not count any more.
    pub fn attempt(&mut self, sensor: usize) -> (usize, Arc<AtomicBool>) {
        self.change(sensor, |feed| {
            let over = Arc::new(AtomicBool::new(feed.is_done()));
            feed.over.push(Arc::clone(&over));
            feed.running += 1;
            feed.wants_another = false;
            (feed.over.len() - 1, over)
        })
    }

    /// The sensor has said something to this attempt; false where another one counts.
    pub fn hear(&mut self, (sensor, attempt): (usize, usize), now_ns: i64) -> bool {
        self.change(sensor, |feed| feed.hear(attempt, now_ns))
    }

    /// Puts an item of an attempt that was heard into the queue of its sensor, if there is room.
    pub fn push(&mut self, sensor: usize, item: T, now_ns: i64) -> Pushed<T> {
        let bytes_max = self.bytes_max;
        let pushed = self.change(sensor, |feed| {
            if feed.is_done() {
                return Pushed::Over;
            }
            let bytes = item.bytes();
            let was_empty = feed.queue.is_empty();
            // One is always taken, however large.
            if !was_empty && feed.bytes.saturating_add(bytes) > bytes_max {
                return Pushed::Full(item);
            }
            feed.bytes = feed.bytes.saturating_add(bytes);
            feed.since_ns = now_ns;
            feed.queue.push_back((item.key(), item));
            if was_empty { Pushed::First } else { Pushed::Behind }
        });
        if matches!(pushed, Pushed::First) {
            self.note_head(sensor);
        }
        pushed
    }

    /// An attempt has come to its end.
    pub fn ended(
        &mut self,
        (sensor, attempt): (usize, usize),
        outcome: Result<Said, Fault>,
        now_ns: i64,
    ) {
        let wants_another = self.change(sensor, |feed| {
            feed.running = feed.running.saturating_sub(1);
            let counts = feed.winner.is_none_or(|winner| winner == attempt);
            if feed.is_done() || !counts {
                return false;
            }
            feed.since_ns = now_ns;
            match outcome {
                Err(fault) if fault.is_passing() && feed.may_again() => feed.wants_another = true,
                // The other one may still hear something.
                Err(fault) if fault.is_passing() && feed.winner.is_none() && feed.running > 0 => {}
                outcome => feed.end(outcome),
            }
            feed.wants_another
        });
        if wants_another {
            self.due_ns = i64::MIN;
        }
    }

    /// Leaves behind who is too late, and says who is to be asked once more.
    pub fn look(&mut self, now_ns: i64) -> Late {
        let mut late = Late::default();
        if now_ns < self.due_ns {
            return late;
        }
        let limits = self.limits.clone();
        let passed_ns = now_ns.saturating_sub(self.begun_ns);
        let is_over = limits.deadline.filter(|deadline| passed_ns >= units::nanos(*deadline));
        let is_hedged = passed_ns >= units::nanos(limits.hedge);
        for sensor in 0..self.feeds.len() {
            self.change(sensor, |feed| {
                if feed.is_done() {
                    return;
                }
                let silent_ns = now_ns.saturating_sub(feed.since_ns);
                let is_silent = feed.queue.is_empty() && silent_ns >= units::nanos(limits.silence);
                let why = match (is_over, is_silent) {
                    (Some(deadline), _) => format!("it was not done within {}", in_words(deadline)),
                    (_, true) if feed.winner.is_some() => {
                        format!("it said nothing for {}", in_words(limits.silence))
                    }
                    (_, true) => format!("it did not answer within {}", in_words(limits.silence)),
                    (None, false) => {
                        if feed.may_again() && (is_hedged || feed.wants_another) {
                            late.again.push(sensor);
                        }
                        return;
                    }
                };
                feed.end(Err(Fault::Slow(why)));
                late.left.push(sensor);
            });
        }
        self.due_ns = self.next_due(now_ns);
        late
    }

    /// Nobody is late before this time, unless somebody asks to be asked again.
    fn next_due(&self, now_ns: i64) -> i64 {
        let after = |time: Duration| self.begun_ns.saturating_add(units::nanos(time));
        // Who is waited for later than now is late later.
        let since_ns = self.waited.first().map_or(now_ns, |(since_ns, _)| *since_ns);
        let silent_ns = since_ns.saturating_add(units::nanos(self.limits.silence));
        let deadline_ns = self.limits.deadline.map_or(i64::MAX, after);
        let hedge_ns = Some(after(self.limits.hedge)).filter(|hedge_ns| *hedge_ns > now_ns);
        silent_ns.min(deadline_ns).min(hedge_ns.unwrap_or(i64::MAX))
    }

    /// Takes out what can go, some of it at a time; whether nothing further comes.
    pub fn fill(&mut self, now_ns: i64, batch: &mut Vec<(usize, T::Key, T)>) -> bool {
        while batch.len() < BATCH {
            if self.is_to_wait(now_ns) {
                return false;
            }
            let Some((key, sensor)) = self.heads.pop_first() else {
                return self.waited.is_empty();
            };
            let item = self.change(sensor, |feed| {
                let (_, item) = feed.queue.pop_front()?;
                feed.bytes = feed.bytes.saturating_sub(item.bytes());
                // From now on it is waited for.
                if feed.queue.is_empty() {
                    feed.since_ns = now_ns;
                }
                Some(item)
            });
            batch.push((sensor, key, item.expect("a head is in its queue")));
            self.note_head(sensor);
        }
        false
    }

    /// Something earlier may come of a sensor, and order still waits for it.
    fn is_to_wait(&self, now_ns: i64) -> bool {
        let Some((since_ns, _)) = self.waited.last() else { return false };
        let silent_ns = now_ns.saturating_sub(*since_ns);
        self.limits.patience.is_none_or(|most| silent_ns < units::nanos(most))
    }

    fn note_head(&mut self, sensor: usize) {
        let head = self.feeds.get(sensor).and_then(|feed| feed.queue.front());
        self.heads.extend(head.map(|(key, _)| (key.clone(), sensor)));
    }

    /// Nothing more is taken of anybody.
    pub fn end(&mut self) {
        for sensor in 0..self.feeds.len() {
            self.change(sensor, |feed| feed.end(Err(Fault::Stopped)));
        }
    }

    /// What came of each sensor.
    pub fn parts(&self, names: &[String], tally: &Tally<T::Key>) -> Vec<Part> {
        let each = names.iter().zip(&tally.counts).zip(&self.feeds);
        let part = |((name, &(count, late)), feed): ((&String, &(u64, u64)), &Feed<T>)| Part {
            sensor: name.clone(),
            count,
            late,
            outcome: feed.outcome.clone().unwrap_or(Err(Fault::Stopped)),
        };
        each.map(part).collect()
    }
}

/// What went out.
#[derive(Clone, Debug)]
pub struct Tally<K> {
    /// Place of the last one that went out in order.
    last: Option<K>,
    /// Of each sensor, and how much of that too late.
    counts: Vec<(u64, u64)>,
}

impl<K: Ord> Tally<K> {
    /// Of so many sensors.
    pub fn new(sensors: usize) -> Self {
        Self { last: None, counts: vec![(0, 0); sensors] }
    }

    /// Counts an item that goes out.
    pub fn count(&mut self, sensor: usize, key: K) {
        let is_late = self.last.as_ref().is_some_and(|last| key < *last);
        let (count, late) = self.counts.get_mut(sensor).expect("each has one");
        *count += 1;
        *late += u64::from(is_late);
        if !is_late {
            self.last = Some(key);
        }
    }
}

fn in_words(time: Duration) -> String {
    page::text::duration(units::nanos(time))
}
