//! Which waits inside the recorder are too long, and what goes on without what.
//!
//! Threads say what they wait for before they wait for another one. All of these waits end by
//! themselves (ARCHITECTURE.md, Threads, queues and memory), so one that lasts longer than its
//! limit is a mistake of ours or a disk beyond all patience. The watchdog says which it is. Where
//! the index may stand in the way, the recording goes on without it: what the indexer has in hand
//! is taken from it, its queue is emptied, and no stripe is handed over, until the thread of the
//! index has come back from its wait. Stripes that are left out are indexed late, as others for
//! which there was no time.

use core::fmt;
use core::time::Duration;

use stage::sync::atomic::{AtomicBool, Ordering};
use stage::sync::{Arc, Mutex};
use units::Clock;

/// A wait of one thread for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// An input that can wait, for a column of the pool.
    IntakeForColumn,
    /// The ring writer, for columns of its reserve.
    RingForReserve,
    /// The ring writer, for writes under way.
    RingForMembers,
    /// The index, for a column of its own pool.
    IndexForColumn,
    /// The index, for the place of one of its parts in the ring.
    IndexForPlace,
    /// The index, for its files.
    IndexForFiles,
    /// Who gives members back what they missed, for members: to be opened, looked for, read.
    ResilverForMembers,
    /// The same, for the ring writer: its answer, or that what it wrote is durable.
    ResilverForRing,
    /// The scrub, for members: to be opened and read.
    ScrubForMembers,
    /// The same, for the ring writer.
    ScrubForRing,
}

impl Wait {
    /// Who waits, and what for.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::IntakeForColumn => ("the intake", "a column of the pool"),
            Self::RingForReserve => ("the ring writer", "columns of its reserve"),
            Self::RingForMembers => ("the ring writer", "writes of the members"),
            Self::IndexForColumn => ("the index", "a column for an index"),
            Self::IndexForPlace => ("the index", "the place of an index in the ring"),
            Self::IndexForFiles => ("the index", "files of the index directory"),
            Self::ResilverForMembers => ("the resilver", "reads of the members"),
            Self::ResilverForRing => ("the resilver", "the ring writer"),
            Self::ScrubForMembers => ("the scrub", "reads of the members"),
            Self::ScrubForRing => ("the scrub", "the ring writer"),
        }
    }

    /// Longer than whatever ends the wait by itself.
    fn limit(self) -> Duration {
        Duration::from_secs(match self {
            // An indexer that says nothing is ended after a minute, and gives columns back.
            Self::IntakeForColumn => 90,
            // A member that does not answer is left behind after 2 s.
            Self::RingForReserve | Self::RingForMembers => 20,
            Self::IndexForColumn | Self::IndexForPlace | Self::IndexForFiles => 30,
            // A member that fails slowly is given up after 2 minutes, one that hangs after 10 s.
            Self::ResilverForMembers | Self::ScrubForMembers => 180,
            // It may itself wait for its reserve and for the members.
            Self::ResilverForRing | Self::ScrubForRing => 60,
        })
    }

    /// The index is the one that waits, or may hold what is waited for.
    fn is_of_index(self) -> bool {
        matches!(
            self,
            Self::IntakeForColumn
                | Self::RingForReserve
                | Self::IndexForColumn
                | Self::IndexForPlace
                | Self::IndexForFiles
        )
    }
}

/// A wait that is longer than its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LongWait {
    wait: Wait,
    waited_ns: i64,
}

impl fmt::Display for LongWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thread, what) = self.wait.words();
        write!(f, "{thread} has waited {} s for {what}", self.waited_ns / 1_000_000_000)
    }
}

#[derive(Debug)]
struct UnderWay {
    number: u64,
    wait: Wait,
    /// `None` until the watchdog looks for the first time.
    since_ns: Option<i64>,
    is_told: bool,
}

#[derive(Debug, Default)]
struct Register {
    next: u64,
    under_way: Vec<UnderWay>,
    /// What the long ones were that ended since the last look.
    ended: Vec<LongWait>,
    /// When the watchdog looked last.
    looked_ns: i64,
}

#[derive(Debug, Default)]
struct Shared {
    register: Mutex<Register>,
    is_without_index: AtomicBool,
}

/// Who waits for what, since when. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    shared: Arc<Shared>,
}

/// A wait that ends when this is dropped.
#[must_use = "the wait is over when it is dropped"]
pub(crate) struct Waiting<'c> {
    waits: Waits,
    clock: Option<&'c dyn Clock>,
    number: u64,
}

impl Waits {
    pub(crate) fn begin<'c>(&self, wait: Wait, clock: &'c dyn Clock) -> Waiting<'c> {
        let number = self.enter(wait, Some(clock.boottime_ns()));
        Waiting { waits: self.clone(), clock: Some(clock), number }
    }

    /// The same for a thread without a clock, by that of the watchdog: its first look begins it.
    pub(crate) fn begin_by_look(&self, wait: Wait) -> Waiting<'static> {
        Waiting { waits: self.clone(), clock: None, number: self.enter(wait, None) }
    }

    /// Waits that way while something is done.
    pub(crate) fn during<T>(&self, wait: Wait, work: impl FnOnce() -> T) -> T {
        let _waiting = self.begin_by_look(wait);
        work()
    }

    fn enter(&self, wait: Wait, since_ns: Option<i64>) -> u64 {
        let mut register = stage::lock(&self.shared.register);
        let number = register.next;
        register.next += 1;
        register.under_way.push(UnderWay { number, wait, since_ns, is_told: false });
        number
    }

    /// The recording goes on without the index: nothing is handed to it, and what it has is
    /// taken back.
    pub(crate) fn is_without_index(&self) -> bool {
        self.shared.is_without_index.load(Ordering::Relaxed)
    }

    /// The thread of the index waits for no other thread, and holds nothing any more.
    pub(crate) fn index_is_back(&self) {
        self.shared.is_without_index.store(false, Ordering::Relaxed);
    }

    /// Waits that have become too long, in words, and those that have ended.
    pub(crate) fn look(&self, now_ns: i64) -> Vec<String> {
        let mut register = stage::lock(&self.shared.register);
        register.looked_ns = now_ns;
        let mut lines: Vec<String> =
            register.ended.drain(..).map(|ended| format!("{ended}, and goes on")).collect();
        for under_way in &mut register.under_way {
            let since_ns = *under_way.since_ns.get_or_insert(now_ns);
            let (wait, waited_ns) = (under_way.wait, now_ns.saturating_sub(since_ns));
            if waited_ns < units::nanos(wait.limit()) {
                continue;
            }
            if wait.is_of_index() {
                self.shared.is_without_index.store(true, Ordering::Relaxed);
            }
            if !core::mem::replace(&mut under_way.is_told, true) {
                let without = "; the recording goes on without the index";
                let then = if wait.is_of_index() { without } else { "" };
                lines.push(format!("{}{then}", LongWait { wait, waited_ns }));
            }
        }
        lines
    }

    /// The waits under way that are too long.
    pub(crate) fn long(&self, now_ns: i64) -> Vec<String> {
        let register = stage::lock(&self.shared.register);
        let waits = register.under_way.iter().map(|&UnderWay { wait, since_ns, .. }| {
            let waited_ns = since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
            LongWait { wait, waited_ns }
        });
        let is_long = |it: &LongWait| it.waited_ns >= units::nanos(it.wait.limit());
        waits.filter(is_long).map(|long| long.to_string()).collect()
    }

    fn end(&self, number: u64, now_ns: Option<i64>) {
        let mut register = stage::lock(&self.shared.register);
        let now_ns = now_ns.unwrap_or(register.looked_ns);
        let place = register.under_way.iter().position(|it| it.number == number);
        let ended = register.under_way.swap_remove(place.expect("it was begun"));
        if ended.is_told {
            let waited_ns = ended.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
            register.ended.push(LongWait { wait: ended.wait, waited_ns });
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waits.end(self.number, self.clock.map(Clock::boottime_ns));
    }
}

#[cfg(test)]
mod tests {
    use units::{ManualClock, Timestamp};

    use super::*;

    #[test]
    fn a_wait_that_is_too_long_is_told_once_and_so_is_its_end() {
        let clock = ManualClock::new(Timestamp(1));
        let waits = Waits::default();
        let started_ns = clock.boottime_ns();
        let at = |seconds: i64| started_ns + seconds * 1_000_000_000;
        let short = waits.begin(Wait::IndexForPlace, &clock);
        let members = waits.begin(Wait::RingForMembers, &clock);
        assert!(waits.look(at(19)).is_empty() && waits.long(at(19)).is_empty());
        drop(short);
        let line = "the ring writer has waited 20 s for writes of the members";
        assert_eq!(waits.look(at(20)), [line]);
        assert_eq!(waits.long(at(20)), [line]);
        assert!(waits.look(at(40)).is_empty() && !waits.is_without_index());
        assert_eq!(waits.long(at(40)), [line.replace("20 s", "40 s")]);
        drop(members);
        assert_eq!(waits.look(at(60)).len(), 1);
        assert!(waits.look(at(60)).is_empty() && waits.long(at(60)).is_empty());
    }

    #[test]
    fn who_works_beside_the_recording_is_told_by_name_and_leaves_the_index_alone() {
        for (wait, limit, said) in [
            (
                Wait::ResilverForMembers,
                180,
                "the resilver has waited 180 s for reads of the members",
            ),
            (Wait::ResilverForRing, 60, "the resilver has waited 60 s for the ring writer"),
            (Wait::ScrubForMembers, 180, "the scrub has waited 180 s for reads of the members"),
            (Wait::ScrubForRing, 60, "the scrub has waited 60 s for the ring writer"),
        ] {
            let waits = Waits::default();
            let at = |seconds: i64| 7_000_000_000 + seconds * 1_000_000_000;
            assert!(waits.look(at(-5)).is_empty());
            let waiting = waits.begin_by_look(wait);
            assert!(waits.long(at(limit)).is_empty(), "there was no look since it began");
            assert!(waits.look(at(0)).is_empty() && waits.look(at(limit - 1)).is_empty());
            assert_eq!(waits.look(at(limit)), [said]);
            assert_eq!(waits.long(at(limit)), [said]);
            assert!(waits.look(at(limit + 1)).is_empty() && !waits.is_without_index());
            drop(waiting);
            let end = said.replace(&limit.to_string(), &(limit + 1).to_string()) + ", and goes on";
            assert_eq!(waits.look(at(limit + 2)), [end]);
        }
    }

    #[test]
    fn the_index_is_left_behind_where_it_may_be_the_cause() {
        let clock = ManualClock::new(Timestamp(1));
        let at = |seconds: i64| clock.boottime_ns() + seconds * 1_000_000_000;
        for (wait, limit) in [
            (Wait::IntakeForColumn, 90),
            (Wait::RingForReserve, 20),
            (Wait::IndexForColumn, 30),
            (Wait::IndexForPlace, 30),
            (Wait::IndexForFiles, 30),
        ] {
            let waits = Waits::default();
            let waiting = waits.begin(wait, &clock);
            assert!(waits.look(at(limit - 1)).is_empty() && !waits.is_without_index());
            let lines = waits.look(at(limit));
            assert!(lines[0].contains(&format!("{limit} s")), "{lines:?}");
            assert!(lines[0].ends_with("; the recording goes on without the index"), "{lines:?}");
            assert!(waits.is_without_index());
            drop(waiting);
            waits.index_is_back();
            assert!(!waits.is_without_index());
        }
    }
}
