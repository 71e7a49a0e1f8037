//! Giving members back what they missed while the recording goes on.
//!
//! A thread reads and rebuilds by readers of its own; what it found goes to the ring writer, who
//! alone writes. Recording comes first: while the pool is not nearly empty of work, or packets wait
//! for a flush, the thread waits. How far it came is put into the superblocks now and then, and at
//! the end. A disk that hangs in the kernel may hold the thread up for good, so the end of the
//! recording waits for it only shortly, and takes its way to the ring writer from it.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

use core::time::Duration;

use device::Pool;
use stage::{Receiver, Sender, channel};
use units::Sequence;
use units::number::to_u64;
use writer::{Batch, Resilver};

use crate::returns::Returns;
use crate::spares::Opening;
use crate::status::{SharedStatus, status_of};
use crate::storage::Storage;
use crate::task::Task;
use crate::waits::{Wait, Waits};
use crate::way::{Ended, Way};

/// How often a member is looked for that has become stale meanwhile.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait for the recording at once.
const GIVE_WAY: Duration = Duration::from_millis(10);
/// How often the superblocks hear how far the work is: it costs a few flushes on every member.
const CURSOR_NS: i64 = 30_000_000_000;
/// How long the end of a recording waits for the thread: what it writes last is how far it came.
const END: Duration = Duration::from_secs(1);

/// The thread.
pub(crate) struct Resilverer {
    storage: Arc<dyn Storage>,
    tasks: Way,
    status: SharedStatus,
    pool: Pool,
    /// Closed when the recording ends.
    end: Receiver<()>,
    /// Members that are away.
    returns: Returns,
    waits: Waits,
}

/// The thread, for who started it; it ends when this is dropped, or is left to itself.
pub(crate) struct Working {
    end: Option<Sender<()>>,
    ended: Receiver<()>,
    tasks: Way,
}

impl Drop for Working {
    fn drop(&mut self) {
        drop(self.end.take());
        // Nothing is ever sent: the other side is gone, or the thread hangs.
        self.ended.recv_timeout(END).unwrap_or_default();
        self.tasks.close();
    }
}

/// Starts the thread.
pub(crate) fn start(
    opening: Opening,
    (status, tasks, pool): (SharedStatus, Sender<Task>, Pool),
    waits: Waits,
) -> std::io::Result<Working> {
    let (end, end_heard) = channel(0);
    let (has_ended, ended) = channel::<()>(0);
    let tasks = Way::new(tasks);
    let resilverer = Resilverer {
        storage: Arc::clone(&opening.storage),
        returns: Returns::new(opening),
        tasks: tasks.clone(),
        status,
        pool,
        end: end_heard,
        waits,
    };
    let body = move || {
        resilverer.run();
        drop(has_ended);
    };
    stage::spawn("resilver", body)?;
    Ok(Working { end: Some(end), ended, tasks })
}

impl Resilverer {
    /// Works until the recording ends. What cannot be read now is tried again in the next epoch, or
    /// the next recording.
    fn run(mut self) {
        let mut seen = None;
        while self.rest(LOOK).is_ok() {
            let epoch = status_of(&self.status).epoch;
            let returns = || self.returns.look(&self.status);
            let returned = self.waits.during(Wait::ResilverForMembers, returns);
            if let Some(returned) = returned {
                let Ok(()) = self.send(returned) else { return };
                continue;
            }
            if seen == Some(epoch) {
                continue;
            }
            if self.all().is_err() {
                return;
            }
            seen = Some(epoch);
        }
    }

    fn rest(&self, time: Duration) -> Result<(), Ended> {
        match self.end.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Ended),
        }
    }

    fn all(&self) -> Result<(), Ended> {
        let open = || self.waits.during(Wait::ResilverForMembers, || self.storage.reader());
        let Ok(reader) = open() else { return Ok(()) };
        for member in Resilver::needed(&reader) {
            if let Ok(work) = open().and_then(|reader| Resilver::new(reader, member)) {
                self.one(work)?;
            }
        }
        Ok(())
    }

    fn one(&self, mut work: Resilver) -> Result<(), Ended> {
        // Slots below this were refused, and stay in the gap.
        let (mut bytes, mut refused_below) = (0, Sequence(0));
        let mut said_ns = status_of(&self.status).now_ns;
        loop {
            let ended = self.give_way().is_err();
            let tail = status_of(&self.status).repairable_from;
            // Memory that a stalled member holds: the writer will expel it.
            let next = || if ended { None } else { work.next_batch(tail).ok() };
            let batch = self.waits.during(Wait::ResilverForMembers, next);
            let Some(Batch { rows, is_last, .. }) = batch else {
                self.say(&work, refused_below, None)?;
                return if ended { Err(Ended) } else { Ok(()) };
            };
            let mut newest = 0;
            for repair in rows {
                let (answer, number) = channel(1);
                let sequence = repair.sequence;
                bytes += to_u64(repair.len);
                self.send(Task::Repair { repair, answer })?;
                match self.waits.during(Wait::ResilverForRing, || number.recv()) {
                    Ok(Ok(number)) => newest = newest.max(number),
                    // The ring has come round to it; the next batch begins behind that.
                    Ok(Err(volume::Error::Overwritten(_))) => {
                        refused_below = refused_below.max(sequence + 1);
                    }
                    // Members came or went: the work begins again in the new epoch.
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => return Err(Ended),
                }
            }
            self.wait_until_durable(newest)?;
            let now_ns = status_of(&self.status).now_ns;
            if is_last {
                return self.say(&work, refused_below, Some(bytes));
            }
            if now_ns - said_ns >= CURSOR_NS {
                self.say(&work, refused_below, None)?;
                said_ns = now_ns;
            }
        }
    }

    /// Waits for a write of the ring writer. Where the recording ends before, the last cursor
    /// holds.
    fn wait_until_durable(&self, number: u64) -> Result<(), Ended> {
        let _waiting = self.waits.begin_by_look(Wait::ResilverForRing);
        while status_of(&self.status).durable_below <= number {
            self.rest(GIVE_WAY)?;
        }
        Ok(())
    }

    /// Waits while the recording needs the disks.
    fn give_way(&self) -> Result<(), Ended> {
        loop {
            let is_calm = self.pool.free_count() * 4 >= self.pool.count() * 3;
            self.rest(if is_calm { Duration::ZERO } else { GIVE_WAY })?;
            if is_calm {
                return Ok(());
            }
        }
    }

    fn say(&self, work: &Resilver, from: Sequence, done: Option<u64>) -> Result<(), Ended> {
        let clean_from = work.clean_from().max(from);
        let done = done.map(|bytes| (bytes, work.lost().len()));
        self.send(Task::Cleaned { seat: work.seat(), clean_from, done })
    }

    fn send(&self, task: Task) -> Result<(), Ended> {
        let _waiting = self.waits.begin_by_look(Wait::ResilverForRing);
        self.tasks.send(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Input, Options};
    use crate::storage::Paths;
    use events::Watches;
    use units::{Epoch, MemberId};

    /// What the ring writer was given never becomes durable: that is reported, and the thread ends.
    #[test]
    fn a_ring_writer_that_does_not_get_on_is_named_and_so_is_a_queue_without_room() {
        let options = Options::new("nowhere".into(), Input::Files(Vec::new()));
        let storage: Arc<dyn Storage> = Arc::new(Paths::new(&options));
        let opening = Opening {
            storage: Arc::clone(&storage),
            watches: Watches::default(),
            discard: crate::Discard::Off,
            run_bytes: 0,
        };
        let (end, end_heard) = channel(0);
        let (tasks, queue) = channel(1);
        let waits = Waits::default();
        let resilverer = Resilverer {
            storage,
            tasks: Way::new(tasks),
            status: SharedStatus::default(),
            pool: Pool::new(1, 4096).unwrap(),
            end: end_heard,
            returns: Returns::new(opening),
            waits: waits.clone(),
        };
        // The watchdog looks once a minute until a line says so.
        let mut seconds = 0;
        let mut told = |ends_with: &str| {
            loop {
                seconds += 60;
                let lines = waits.look(seconds * 1_000_000_000);
                if lines.iter().any(|line| line.ends_with(ends_with)) {
                    return lines;
                }
                std::thread::yield_now();
            }
        };
        let seat = volume::Seat { member: MemberId(0), epoch: Epoch(1), uuid: [1; 16] };
        let cleaned = || Task::Cleaned { seat, clean_from: Sequence(9), done: None };
        std::thread::scope(|scope| {
            let work = scope.spawn(move || {
                let are_sent = (0..2).all(|_| resilverer.send(cleaned()).is_ok());
                (are_sent, resilverer.wait_until_durable(1).is_err())
            });
            let lines = told("for the ring writer");
            assert!(lines.iter().all(|line| line.starts_with("the resilver has waited ")));
            drop((queue.recv().unwrap(), queue.recv().unwrap()));
            told(", and goes on");
            told("for the ring writer");
            assert!(!waits.is_without_index(), "the recording goes on as it is");
            drop(end);
            assert_eq!(work.join().unwrap(), (true, true));
        });
    }
}
