//! Scrubbing on a schedule, by the process that records and below recording.
//!
//! One slot of all members is read and checked at a time; then the thread rests four times as long
//! as that took, and longer while the pool runs low. What is to be repaired the ring writer writes,
//! between its own writes; the slot is read again when that is durable. How far a pass is lies in
//! the index directory, so that a restart goes on.

use std::sync::mpsc::RecvTimeoutError;

use core::time::Duration;
use std::sync::Arc;

use device::Pool;
use format::head::StripeId;
use index::Files;
use stage::{Joining, Receiver, Scope, Sender, channel};
use units::number::to_u64;
use units::{Clock, Sequence, Timestamp, plural};
use writer::{Patrol, Wanted};

use crate::error::Error;
use crate::options::Options;
use crate::status::{SharedStatus, status_of};
use crate::storage::Storage;
use crate::task::Task;
use crate::waits::{Wait, Waits};

/// Of reading and checking a slot to resting after it: a fifth of what the members can do.
const REST: u32 = 4;
/// How long to rest at once while recording needs all there is, or nothing is left to check.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a repair is looked after until it is durable.
const DURABLE: Duration = Duration::from_millis(10);
/// Slots between two times that the progress is stored: 16 GiB on eight members.
const SLOTS_A_MARK: u64 = 1024;
/// Lines about damage that cannot be repaired.
const LINES_MAX: usize = 100;
/// Name of the file with the progress, and the number of its form.
pub(crate) const FILE: &str = "scrub.progress";
const VERSION: u64 = 1;

/// When the pass began, and everything before which it has checked; 0 when it came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Mark {
    began: Timestamp,
    next: Sequence,
}

impl Mark {
    fn load(files: &dyn Files) -> Option<Self> {
        let bytes = files.read(FILE).ok()??;
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let [version, began, next] = words else { return None };
        let began = Timestamp(i64::from_le_bytes(*began));
        let next = Sequence(u64::from_le_bytes(*next));
        (u64::from_le_bytes(*version) == VERSION).then_some(Self { began, next })
    }

    /// Without it a restart begins anew: no reason to stop.
    fn store(self, files: &dyn Files) {
        let (began, next) = (self.began.0.to_le_bytes(), self.next.get().to_le_bytes());
        let words = [VERSION.to_le_bytes(), began, next];
        let stored = files.write_atomic(FILE, words.as_flattened());
        stored.and_then(|()| files.sync(FILE)).unwrap_or_default();
    }
}

/// What the thread works with.
pub(crate) struct Patroller<'a> {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) files: &'a (dyn Files + Sync),
    pub(crate) clock: &'a dyn Clock,
    pub(crate) status: SharedStatus,
    pub(crate) pool: Pool,
    pub(crate) tasks: Sender<Task>,
    pub(crate) waits: Waits,
}

/// What was done, for the report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Patrolled {
    slots: u64,
    repaired: u64,
    left: u64,
    lines: Vec<String>,
}

/// The recording ends.
struct Ended;

impl Patroller<'_> {
    /// Scrubs until `ended` says so, by its other end being gone.
    pub(crate) fn run(&self, every: Duration, ended: &Receiver<()>) -> Patrolled {
        let mut done = Patrolled::default();
        let Err(Ended) = self.passes(every, ended, &mut done);
        done
    }

    fn passes(
        &self,
        every: Duration,
        ended: &Receiver<()>,
        done: &mut Patrolled,
    ) -> Result<core::convert::Infallible, Ended> {
        let mut mark = Mark::load(self.files);
        loop {
            let pass = match mark {
                Some(mark) if mark.next > Sequence(0) => mark,
                Some(mark) if self.age(mark) < every => {
                    let left = every.saturating_sub(self.age(mark));
                    rest(ended, left.min(Duration::from_mins(1)))?;
                    continue;
                }
                _ => Mark { began: self.clock.realtime(), next: Sequence(1) },
            };
            self.pass(pass, ended, done)?;
            let complete = Mark { next: Sequence(0), ..pass };
            complete.store(self.files);
            mark = Some(complete);
        }
    }

    /// Since the pass began. A clock that went back makes the next one due later.
    fn age(&self, mark: Mark) -> Duration {
        let since_ns = self.clock.realtime().since(mark.began);
        Duration::from_nanos(u64::try_from(since_ns).unwrap_or(0))
    }

    fn pass(&self, mark: Mark, ended: &Receiver<()>, done: &mut Patrolled) -> Result<(), Ended> {
        let mut next = mark.next;
        // What was acknowledged when the pass began is what it is about.
        let last = status_of(&self.status).acknowledged.sequence;
        while next < last {
            let epoch = status_of(&self.status).epoch;
            let Some(mut patrol) = self.open(next) else {
                rest(ended, PAUSE)?;
                continue;
            };
            while patrol.next() < last && status_of(&self.status).epoch == epoch {
                let begun_ns = self.clock.boottime_ns();
                if !self.slot(&mut patrol, ended, done)? {
                    rest(ended, PAUSE)?;
                    continue;
                }
                if patrol.next().get().is_multiple_of(SLOTS_A_MARK) {
                    Mark { next: patrol.next(), ..mark }.store(self.files);
                }
                let took_ns = self.clock.boottime_ns().saturating_sub(begun_ns);
                rest(ended, REST * Duration::from_nanos(u64::try_from(took_ns).unwrap_or(0)))
                    .inspect_err(|_| Mark { next: patrol.next(), ..mark }.store(self.files))?;
                while self.pool.free_count() < self.pool.count() / 2 {
                    rest(ended, PAUSE)?;
                }
            }
            next = patrol.next();
        }
        Ok(())
    }

    fn open(&self, next: Sequence) -> Option<Patrol> {
        let _waiting = self.waits.begin_by_look(Wait::ScrubForMembers);
        let reader = self.storage.reader().ok()?;
        Patrol::new(reader, next).ok()
    }

    /// The next slot; false where there is none.
    fn slot(
        &self,
        patrol: &mut Patrol,
        ended: &Receiver<()>,
        done: &mut Patrolled,
    ) -> Result<bool, Ended> {
        let shown = status_of(&self.status);
        let step = || patrol.step(shown.tail, shown.acknowledged);
        let wanted = self.waits.during(Wait::ScrubForMembers, step);
        let Some(wanted) = wanted else { return Ok(false) };
        done.slots += 1;
        let Some(sequence) = wanted.first().map(|wanted| wanted.damage.stripe.sequence) else {
            return Ok(true);
        };
        let found = to_u64(wanted.len());
        self.repair(wanted, ended)?;
        let again = || patrol.look(sequence, status_of(&self.status).acknowledged);
        let left = self.waits.during(Wait::ScrubForMembers, again);
        let left_count = to_u64(left.len());
        done.repaired += found.saturating_sub(left_count);
        done.left += left_count;
        for left in left {
            if done.lines.len() < LINES_MAX {
                done.lines.push(line(&left));
            }
        }
        Ok(true)
    }

    /// Has it written, and waits until it is durable or cannot be.
    fn repair(&self, wanted: Vec<Wanted>, ended: &Receiver<()>) -> Result<(), Ended> {
        let _waiting = self.waits.begin_by_look(Wait::ScrubForRing);
        let mut newest = 0;
        for repair in wanted.into_iter().flat_map(|wanted| wanted.repairs) {
            let (answer, number) = channel(1);
            self.tasks.send(Task::Repair { repair, answer }).map_err(|_| Ended)?;
            // Without a number it was refused, which the next look shows.
            newest = number.recv().map_err(|_| Ended)?.unwrap_or(0).max(newest);
        }
        while status_of(&self.status).durable_below <= newest {
            rest(ended, DURABLE)?;
        }
        Ok(())
    }
}

impl Patrolled {
    /// For the user; nothing where nothing was found.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self { slots, repaired, left, .. } = self;
        let mut notes = Vec::new();
        if repaired + left > 0 {
            let (places, slots) = (plural(*repaired, "place"), plural(*slots, "slot"));
            notes.push(format!("scrub: {places} repaired in {slots}, {left} cannot be"));
        }
        notes.extend(self.lines.iter().cloned());
        notes
    }
}

fn line(left: &Wanted) -> String {
    let StripeId { sequence, sub } = left.damage.stripe;
    let place =
        left.damage.member.map_or_else(String::new, |member| format!(" on member {member}"));
    format!("scrub: stripe {sequence}.{sub}{place} is damaged and cannot be repaired")
}

/// Waits, unless the recording ends.
fn rest(ended: &Receiver<()>, time: Duration) -> Result<(), Ended> {
    match ended.recv_timeout(time) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Ended),
    }
}

/// The thread that scrubs, and what ends it by being dropped.
pub(crate) struct PatrolThread<'scope> {
    thread: Joining<'scope, Patrolled>,
    goes_on: Sender<()>,
}

impl PatrolThread<'_> {
    pub(crate) fn end(self) -> Patrolled {
        drop(self.goes_on);
        self.thread.join().expect("a panic aborts")
    }
}

pub(crate) fn start<'scope>(
    scope: &Scope<'scope, '_>,
    (options, storage): (&Options, &Arc<dyn Storage>),
    ((status, waits), tasks, pool): ((&SharedStatus, &Waits), Sender<Task>, &Pool),
    (files, clock): (&'scope (dyn Files + Sync), &'scope dyn Clock),
) -> Result<Option<PatrolThread<'scope>>, Error> {
    let Some(every) = options.scrub_every else { return Ok(None) };
    let patroller = Patroller {
        storage: Arc::clone(storage),
        files,
        clock,
        status: Arc::clone(status),
        pool: pool.clone(),
        tasks,
        waits: waits.clone(),
    };
    let (goes_on, ended) = channel(1);
    let body = move || patroller.run(every, &ended);
    let thread = scope.spawn("scrub", body).map_err(Error::Thread)?;
    Ok(Some(PatrolThread { thread, goes_on }))
}

#[cfg(test)]
mod tests {
    use index::MemoryFiles;
    use units::{Epoch, ManualClock, MemberId};
    use volume::Seat;
    use writer::{Damage, Outcome, Repair};

    use super::*;
    use crate::options::{Input, Options};
    use crate::storage::Paths;

    #[test]
    fn a_mark_is_read_as_it_was_stored_and_nothing_else_is_one() {
        let files = MemoryFiles::default();
        assert_eq!(Mark::load(&files), None);
        let mark = Mark { began: Timestamp(-5), next: Sequence(77) };
        mark.store(&files);
        assert_eq!(Mark::load(&files), Some(mark));
        for bytes in [&b""[..], &[1; 23], &[2; 24], &[1; 32]] {
            files.write_atomic(FILE, bytes).unwrap();
            assert_eq!(Mark::load(&files), None, "{bytes:?}");
        }
    }

    /// The ring writer has the repair and does not answer: that is reported, and the thread ends.
    #[test]
    fn a_ring_writer_that_does_not_answer_the_scrub_is_named() {
        let options = Options::new("nowhere".into(), Input::Files(Vec::new()));
        let (pool, waits) = (Pool::new(1, 4096).unwrap(), Waits::default());
        let (tasks, queue) = channel(1);
        let (clock, files) = (ManualClock::new(Timestamp(0)), MemoryFiles::default());
        let patroller = Patroller {
            storage: Arc::new(Paths::new(&options)),
            files: &files,
            clock: &clock,
            status: SharedStatus::default(),
            pool: pool.clone(),
            tasks,
            waits: waits.clone(),
        };
        let seat = Seat { member: MemberId(0), epoch: Epoch(1), uuid: [1; 16] };
        let data = pool.take().unwrap().freeze();
        let repair = Repair { seat, sequence: Sequence(9), first_row: 0, data, len: 4096 };
        let stripe = StripeId { sequence: Sequence(9), sub: 0 };
        let (rows, repairable) = (Vec::new(), true);
        let damage = Damage {
            stripe,
            member: Some(MemberId(0)),
            first_row: 0,
            rows,
            slot_offset: 0,
            repairable,
            body: None,
        };
        let outcome = Outcome::Repairable;
        let wanted = Vec::from([Wanted { damage, repairs: Vec::from([repair]), outcome }]);
        let (goes_on, ended) = channel(1);
        std::thread::scope(|scope| {
            let scrub = scope.spawn(move || patroller.repair(wanted, &ended).is_err());
            let Ok(Task::Repair { answer, .. }) = queue.recv() else { panic!("it is sent") };
            let at = |seconds: i64| seconds * 1_000_000_000;
            assert!(waits.look(at(1)).is_empty());
            assert_eq!(waits.look(at(61)), ["the scrub has waited 60 s for the ring writer"]);
            assert!(!waits.is_without_index(), "the recording goes on as it is");
            drop((answer, goes_on));
            assert!(scrub.join().unwrap(), "the recording is over");
        });
        let told = waits.look(62_000_000_000);
        assert_eq!(told, ["the scrub has waited 60 s for the ring writer, and goes on"]);
    }
}
