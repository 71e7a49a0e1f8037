//! The state of a modelled disk, and what each operation does to it at a given time.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::mechanics::{Mechanics, Timing};
use super::work::Work;
use crate::fault::{Effect, Faults, faulty_flush, faulty_read, latency_of};
use crate::medium::{Medium, Write};
use crate::{Completion, Crash, Error, Fault, Operation, ROW_SIZE, Shared, to_u64, to_usize};

#[derive(Clone)]
pub(super) struct Disk {
    pub(super) timing: Timing,
    pub(super) mechanics: Mechanics,
    pub(super) medium: Medium,
    pub(super) faults: Faults,
    /// By the time they are done, then by submission.
    pending: BTreeMap<(i64, u64), Pending>,
    submissions: u64,
    /// A reap takes only some of what is done, in any order.
    pub(super) reordered: bool,
    /// Reads see rows of writes in flight, more of them each time.
    pub(super) gradual: bool,
    /// Vanished: everything fails.
    pub(super) absent: bool,
    /// How often it has vanished: who had it open then has nothing of it any more.
    pub(super) vanished: u64,
    pub(super) other: Option<Arc<Mutex<Disk>>>,
    /// When a call will have been answered that no thread waits for any more.
    pub(super) overdue_until_ns: i64,
    /// It does nothing before.
    pub(super) hangs_until_ns: i64,
    pub(super) work: Work,
}

#[derive(Clone, Debug)]
struct Pending {
    /// Port and token.
    from: (u32, u64),
    submitted_ns: i64,
    result: Result<(), Error>,
    action: Action,
    payload: Payload,
}

/// What an operation carries until it is done.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// Of a write: lent, as to any device.
    Lent(#[expect(dead_code, reason = "it is held")] Shared),
    /// What a read has read.
    Read(Vec<u8>),
    Nothing,
}

/// What becomes of an operation that has begun.
pub(super) struct Outcome {
    pub(super) done_ns: i64,
    /// What will be reported.
    pub(super) result: Result<(), Error>,
    /// What it changes when it is done.
    pub(super) action: Action,
    /// The write arrives on the other disk.
    pub(super) to_other: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Write(Vec<Arc<Write>>),
    /// Covers the writes completed when it was submitted.
    Flush(u64),
    Nothing,
}

impl Outcome {
    pub(super) fn nothing(done_ns: i64, result: Result<(), Error>) -> Self {
        Self { done_ns, result, action: Action::Nothing, to_other: false }
    }
}

fn gone(operation: &'static str, offset: u64) -> Error {
    Error::io(operation, offset, Errno::NODEV)
}

impl Disk {
    pub(super) fn new(timing: Timing, seed: u64) -> Self {
        Self {
            timing,
            mechanics: Mechanics::new(seed),
            medium: Medium::default(),
            faults: Faults::new(Vec::new(), seed),
            pending: BTreeMap::new(),
            submissions: 0,
            reordered: false,
            gradual: false,
            absent: false,
            vanished: 0,
            other: None,
            overdue_until_ns: i64::MIN,
            hangs_until_ns: i64::MIN,
            work: Work::default(),
        }
    }

    fn is_gone(&self, opened: u64) -> bool {
        self.absent || self.vanished != opened
    }

    /// A write to a disk of `size` bytes begins.
    pub(super) fn write(
        &mut self,
        (now_ns, opened): (i64, u64),
        (offset, data): (u64, &[u8]),
        size: u64,
    ) -> Outcome {
        self.work.writes += 1;
        self.work.written_bytes += to_u64(data.len());
        if self.is_gone(opened) {
            return Outcome::nothing(now_ns, Err(gone("write", offset)));
        }
        let fault = self.faults.next(Operation::Write, offset, data.len());
        self.delay(now_ns, fault);
        let done_ns = self.mechanics.write(&self.timing, now_ns, (offset, to_u64(data.len())));
        let effect = Effect::of_write(fault, (offset, data), size, &mut self.faults.random);
        let arriving = effect.parts.iter().map(|(at, bytes)| self.medium.submit(*at, bytes));
        let action = Action::Write(arriving.collect());
        Outcome {
            done_ns,
            result: effect.result,
            action,
            to_other: fault == Some(Fault::OtherDisk),
        }
    }

    /// A write that was meant for another disk.
    pub(super) fn write_stray(&mut self, offset: u64, data: &[u8]) {
        let write = self.medium.submit(offset, data);
        self.medium.complete(&write);
    }

    /// A discard begins: rows become zeros or stay as they are, a run of them alike.
    pub(super) fn discard(
        &mut self,
        (now_ns, opened): (i64, u64),
        offset: u64,
        len: u64,
    ) -> Outcome {
        self.work.discarded_bytes += len;
        if self.is_gone(opened) {
            return Outcome::nothing(now_ns, Err(gone("discard", offset)));
        }
        let fault = self.faults.next(Operation::Discard, offset, to_usize(len));
        self.delay(now_ns, fault);
        let done_ns = self.mechanics.discard(&self.timing, now_ns);
        match fault {
            Some(Fault::Error) => {
                return Outcome::nothing(done_ns, Err(Error::io("discard", offset, Errno::IO)));
            }
            Some(Fault::Lost) => return Outcome::nothing(done_ns, Ok(())),
            _ => {}
        }
        let mut writes = Vec::new();
        let mut at = offset;
        while at < offset + len {
            let run_bytes = to_u64(ROW_SIZE) << self.faults.random.below(10);
            let run_bytes = run_bytes.min(offset + len - at);
            if self.faults.random.below(4) > 0 {
                writes.push(self.medium.submit_zeros(at, run_bytes));
            }
            at += run_bytes;
        }
        Outcome { done_ns, result: Ok(()), action: Action::Write(writes), to_other: false }
    }

    pub(super) fn flush(&mut self, (now_ns, opened): (i64, u64)) -> Outcome {
        self.work.flushes += 1;
        if self.is_gone(opened) {
            return Outcome::nothing(now_ns, Err(gone("flush", 0)));
        }
        let fault = self.faults.next(Operation::Flush, 0, 0);
        self.delay(now_ns, fault);
        if fault == Some(Fault::FlushForgets) {
            self.medium.abandon(&mut self.faults.random);
        }
        if let Some(result) = fault.and_then(faulty_flush) {
            return Outcome::nothing(now_ns, result);
        }
        let done_ns = self.mechanics.flush(&self.timing, now_ns);
        let action = Action::Flush(self.medium.completed());
        Outcome { done_ns, result: Ok(()), action, to_other: false }
    }

    /// When a read is done, and its result.
    pub(super) fn read(
        &mut self,
        (now_ns, opened): (i64, u64),
        (offset, into): (u64, &mut [u8]),
        size: u64,
    ) -> (i64, Result<(), Error>) {
        self.work.reads += 1;
        self.work.read_bytes += to_u64(into.len());
        if self.is_gone(opened) {
            return (now_ns, Err(gone("read", offset)));
        }
        let fault = self.faults.next(Operation::Read, offset, into.len());
        self.delay(now_ns, fault);
        let done_ns = self.mechanics.read(&self.timing, now_ns, (offset, to_u64(into.len())));
        if self.gradual {
            self.show_some();
        }
        let Self { medium, faults, .. } = self;
        let result = faulty_read(fault, (offset, into), size, &mut faults.random, |at, into| {
            medium.read(at, into)
        });
        (done_ns, result)
    }

    /// Rows of writes in flight become visible, in any order.
    fn show_some(&mut self) {
        let Self { pending, medium, faults, .. } = self;
        for pending in pending.values() {
            let Action::Write(writes) = &pending.action else { continue };
            for write in writes {
                medium.show_some(write, &mut faults.random);
            }
        }
    }

    /// Queues an operation that has begun at `submitted_ns`.
    pub(super) fn submit(
        &mut self,
        (from, submitted_ns): ((u32, u64), i64),
        outcome: Outcome,
        payload: Payload,
    ) {
        self.submissions += 1;
        let Outcome { done_ns, result, action, .. } = outcome;
        let pending = Pending { from, submitted_ns, result, action, payload };
        self.pending.insert((done_ns, self.submissions), pending);
    }

    pub(super) fn in_flight(&self, port: u32) -> usize {
        self.of(port).count()
    }

    fn of(&self, port: u32) -> impl Iterator<Item = (&(i64, u64), &Pending)> {
        self.pending.iter().filter(move |(_, pending)| pending.from.0 == port)
    }

    /// When the first of a port's operations in flight is done.
    pub(super) fn first_done_ns(&self, port: u32) -> Option<i64> {
        self.of(port).next().map(|((done_ns, _), _)| *done_ns)
    }

    /// Completes what is done: all of it in order or, reordered, some of it in any order.
    pub(super) fn reap(
        &mut self,
        (port, now_ns): (u32, i64),
        at_least_one: bool,
        out: &mut Vec<Completion>,
    ) {
        let done = self.pending.range(..=(now_ns, u64::MAX));
        let done = done.filter(|(_, pending)| pending.from.0 == port);
        let mut done: Vec<_> = done.map(|(key, _)| *key).collect();
        let mut count = done.len();
        if self.reordered && count > 0 {
            let least = u64::from(at_least_one);
            count = to_usize(least + self.faults.random.below(to_u64(count) - least + 1));
        }
        for _ in 0..count {
            let bound = if self.reordered { to_u64(done.len()) } else { 1 };
            let key = done.remove(to_usize(self.faults.random.below(bound)));
            out.push(self.complete(key));
        }
    }

    fn complete(&mut self, key: (i64, u64)) -> Completion {
        let pending = self.pending.remove(&key).expect("the key is that of a pending operation");
        self.apply(pending.action);
        let latency_ns = key.0.saturating_sub(pending.submitted_ns).max(0).unsigned_abs();
        let read = match pending.payload {
            Payload::Read(read) => Some(read),
            Payload::Lent(_) | Payload::Nothing => None,
        };
        Completion { token: pending.from.1, result: pending.result, latency_ns, read }
    }

    pub(super) fn apply(&mut self, action: Action) {
        match action {
            Action::Nothing => {}
            Action::Flush(completed) => self.medium.flush(completed),
            Action::Write(writes) => {
                for write in &writes {
                    self.medium.complete(write);
                }
                if self.timing.cache_bytes == 0 {
                    self.medium.flush(self.medium.completed());
                }
            }
        }
    }

    /// What a fault adds to what the operation takes.
    fn delay(&mut self, now_ns: i64, fault: Option<Fault>) {
        self.mechanics.stall(now_ns, latency_of(fault));
        if let Some(Fault::Hangs { ns }) = fault {
            self.hangs_until_ns = self.hangs_until_ns.max(now_ns.saturating_add_unsigned(ns));
        }
    }

    /// Puts everything off that is not done yet; the times at which it will be.
    pub(super) fn stall(&mut self, now_ns: i64, ns: u64) -> Vec<i64> {
        self.mechanics.stall(now_ns, ns);
        self.hangs_until_ns = self.hangs_until_ns.max(now_ns).saturating_add_unsigned(ns);
        let later = self.pending.split_off(&(now_ns.saturating_add(1), 0));
        let put_off = later.into_iter().map(|((done_ns, number), pending)| {
            ((done_ns.saturating_add_unsigned(ns), number), pending)
        });
        let put_off: Vec<_> = put_off.collect();
        let times = put_off.iter().map(|((done_ns, _), _)| *done_ns).collect();
        self.pending.extend(put_off);
        times
    }

    /// Everything in flight fails, and the content is what the crash leaves.
    pub(super) fn vanish(&mut self, now_ns: i64, crash: Crash) {
        self.medium = self.crashed(crash);
        self.absent = true;
        self.vanished += 1;
        for ((_, number), pending) in core::mem::take(&mut self.pending) {
            let (result, action) = (Err(gone("write", 0)), Action::Nothing);
            let payload = match pending.payload {
                Payload::Lent(_) => Payload::Nothing,
                other => other,
            };
            self.pending.insert((now_ns, number), Pending { result, action, payload, ..pending });
        }
    }

    /// The medium as a crash at this moment may leave it.
    pub(super) fn crashed(&self, crash: Crash) -> Medium {
        let mut in_flight: Vec<_> = self.pending.iter().collect();
        in_flight.sort_by_key(|((_, number), _)| *number);
        let writes = in_flight.into_iter().flat_map(|(_, pending)| match &pending.action {
            Action::Write(writes) => writes.as_slice(),
            Action::Flush(_) | Action::Nothing => &[],
        });
        self.medium.crash(crash, writes)
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("medium", &self.medium)
            .field("pending", &self.pending.len())
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}
