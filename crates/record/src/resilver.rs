//! Giving members back what they missed while the recording goes on.
//!
//! A thread reads and rebuilds by readers of its own; what it found goes to the ring writer, who
//! alone writes. Recording comes first: while the pool is not nearly empty of work, or packets wait
//! for a flush, the thread waits. How far it came is put into the superblocks now and then, and at
//! the end.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use core::time::Duration;

use device::Pool;
use units::Clock;
use volume::{Batch, MemberAt, RebuiltRows, Resilver};

use crate::returns::Returns;
use crate::ring::{Board, Repair, Task, look};

/// How often a member is looked for that has become stale meanwhile.
const LOOK: Duration = Duration::from_millis(200);
/// How long to give way at once.
const GIVE_WAY: Duration = Duration::from_millis(10);
/// How often the superblocks hear how far the work is: it costs a few flushes on every member.
const CURSOR_NS: i64 = 30_000_000_000;

/// The recording is over, or its writer is gone.
struct Ended;

/// The thread.
pub(crate) struct Resilverer<'a> {
    pub(crate) volume: PathBuf,
    pub(crate) members: Vec<PathBuf>,
    pub(crate) tasks: SyncSender<Task>,
    pub(crate) board: Board,
    pub(crate) pool: Pool,
    pub(crate) clock: &'a dyn Clock,
    /// Closed when the recording ends.
    pub(crate) end: Receiver<()>,
    /// Members that are away.
    pub(crate) returns: Returns<'a>,
}

impl Resilverer<'_> {
    /// Works until the recording ends. What cannot be read now is tried again in the next epoch, or
    /// the next recording.
    pub(crate) fn run(mut self) {
        let mut seen = None;
        while self.rest(LOOK).is_ok() {
            let shown = look(&self.board);
            let epoch = shown.epoch;
            if let Some((MemberAt { path, .. }, device)) = self.returns.look(&shown) {
                let Ok(()) = self.send(Task::Returned { path, device }) else { return };
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
        let open = || volume::open_reader(&self.volume, &self.members);
        let Ok(reader) = open() else { return Ok(()) };
        for member in Resilver::needed(&reader) {
            if let Ok(work) = open().and_then(|reader| Resilver::new(reader, member)) {
                self.one(work)?;
            }
        }
        Ok(())
    }

    fn one(&self, mut work: Resilver) -> Result<(), Ended> {
        let member = work.member();
        let mut bytes = 0;
        let mut said_ns = self.clock.boottime_ns();
        loop {
            let ended = self.give_way().is_err();
            let tail = look(&self.board).repairable_from;
            // Memory that a stalled member holds: the writer will expel it.
            let batch = if ended { None } else { work.next_batch(tail).ok() };
            let Some(Batch { rows, is_last, .. }) = batch else {
                self.say(member, &work, None)?;
                return if ended { Err(Ended) } else { Ok(()) };
            };
            let mut newest = 0;
            for RebuiltRows { sequence, first_row, data, len } in rows {
                let (answer, number) = sync_channel(1);
                bytes += u64::try_from(len).expect("lengths fit 64 bits");
                let repair = Repair { member, sequence, first_row, data, answer };
                self.send(Task::Repair(repair, len))?;
                match number.recv() {
                    Ok(Some(number)) => newest = newest.max(number),
                    // The member is out again, or the ring has come round.
                    Ok(None) => return Ok(()),
                    Err(_) => return Err(Ended),
                }
            }
            while look(&self.board).durable_below <= newest {
                if self.rest(GIVE_WAY).is_err() {
                    // The last cursor holds.
                    return Err(Ended);
                }
            }
            let now_ns = self.clock.boottime_ns();
            if is_last {
                return self.say(member, &work, Some(bytes));
            }
            if now_ns - said_ns >= CURSOR_NS {
                self.say(member, &work, None)?;
                said_ns = now_ns;
            }
        }
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

    fn say(&self, member: u8, work: &Resilver, done: Option<u64>) -> Result<(), Ended> {
        let done = done.map(|bytes| (bytes, work.lost().len()));
        self.send(Task::Cleaned { member, clean_from: work.clean_from(), done })
    }

    fn send(&self, task: Task) -> Result<(), Ended> {
        self.tasks.send(task).map_err(|_| Ended)
    }
}
