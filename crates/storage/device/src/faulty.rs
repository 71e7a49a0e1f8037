//! A device that goes wrong on purpose, around any other: real disks and files included.
//!
//! A write with a fault is carried out synchronously at its submission and completed at a later
//! reap, so that its effect is exact. [`Fault::Slow`] takes real time: the completion is held back,
//! and nothing else waits. Rules come and go while the device works elsewhere, by [`FaultSwitch`].

#![expect(clippy::disallowed_methods, reason = "a slow device takes its time")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;

use crate::clock::monotonic_ns;
use crate::fault::{Effect, Faults, faulty_flush, faulty_read, latency_of};
use crate::{Completion, Device, Error, Fault, Operation, Rule, Shared, assert_range, to_usize};

/// A device with rules of faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Box<dyn Device>,
    faults: FaultSwitch,
    done: Vec<Completion>,
    /// Added latency of submitted operations, by token.
    slow: BTreeMap<u64, u64>,
    /// Completions held back until a point in time.
    held: Vec<(u64, Completion)>,
}

/// Changes the rules of a [`Faulty`] that works elsewhere.
#[derive(Debug, Clone)]
pub struct FaultSwitch(Arc<Mutex<Faults>>);

impl FaultSwitch {
    /// From the next operation on, this may go wrong too.
    pub fn add(&self, rule: Rule) {
        self.lock().add(rule);
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        stage::lock(&self.0)
    }
}

impl Faulty {
    /// Wraps a device; `seed` decides where a rule leaves something to chance.
    pub fn new(inner: Box<dyn Device>, rules: Vec<Rule>, seed: u64) -> Self {
        let faults = FaultSwitch(Arc::new(Mutex::new(Faults::new(rules, seed))));
        Self { inner, faults, done: Vec::new(), slow: BTreeMap::new(), held: Vec::new() }
    }

    /// Changes the rules from elsewhere.
    pub fn switch(&self) -> FaultSwitch {
        self.faults.clone()
    }

    /// Writes what a fault lets through.
    fn write_faulty(&mut self, fault: Fault, offset: u64, data: &[u8]) -> Result<(), Error> {
        let size = self.inner.size_bytes();
        let effect =
            Effect::of_write(Some(fault), (offset, data), size, &mut self.faults.lock().random);
        for (offset, bytes) in effect.parts {
            self.inner.write_at(offset, &bytes)?;
        }
        effect.result
    }

    fn note_latency(&mut self, token: u64, fault: Option<Fault>) {
        if let latency_ns @ 1.. = latency_of(fault) {
            self.slow.insert(token, latency_ns);
        }
    }

    /// Takes what the inner device has finished, and what was held back long enough.
    fn take(&mut self, wait: Duration, out: &mut Vec<Completion>) {
        let first = out.len();
        self.inner.reap(Some(wait), out);
        let now_ns = monotonic_ns();
        for mut completion in out.split_off(first) {
            if let Some(added_ns) = self.slow.remove(&completion.token) {
                completion.latency_ns += added_ns;
                self.held.push((now_ns + added_ns, completion));
            } else {
                out.push(completion);
            }
        }
        out.extend(self.held.extract_if(.., |(due_ns, _)| *due_ns <= now_ns).map(|held| held.1));
        out.append(&mut self.done);
    }
}

impl Device for Faulty {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        assert_range(offset, len, self.size_bytes());
        let fault = self.faults.lock().next(Operation::Write, offset, len);
        self.note_latency(token, fault);
        match fault {
            None
            | Some(
                Fault::Slow { .. } | Fault::Hangs { .. } | Fault::LyingFlush | Fault::FlushForgets,
            ) => {
                self.inner.submit_write(token, offset, data, len);
            }
            Some(fault) => {
                let bytes = data.get(..len).expect("the length lies in the buffer");
                let result = self.write_faulty(fault, offset, bytes);
                self.done.push(Completion::new(token, result, 0));
            }
        }
    }

    fn submit_flush(&mut self, token: u64) {
        let fault = self.faults.lock().next(Operation::Flush, 0, 0);
        self.note_latency(token, fault);
        match fault.and_then(faulty_flush) {
            None => self.inner.submit_flush(token),
            Some(result) => self.done.push(Completion::new(token, result, 0)),
        }
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        assert_range(offset, to_usize(len), self.size_bytes());
        let fault = self.faults.lock().next(Operation::Discard, offset, to_usize(len));
        self.note_latency(token, fault);
        let result = match fault {
            Some(Fault::Error) => Err(Error::io("discard", offset, Errno::IO)),
            Some(Fault::Lost) => Ok(()),
            _ => return self.inner.submit_discard(token, offset, len),
        };
        self.done.push(Completion::new(token, result, 0));
    }

    /// Read at once, and reported when a slow one would be done.
    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        let mut faults = self.faults.lock();
        let fault = faults.next(Operation::Read, offset, len);
        let (mut bytes, size) = (vec![0; len], self.inner.size_bytes());
        let read = |offset, into: &mut [u8]| self.inner.read_at(offset, into);
        let result = faulty_read(fault, (offset, &mut bytes), size, &mut faults.random, read);
        drop(faults);
        let latency_ns = latency_of(fault);
        let completion = Completion::of_read(token, result, (bytes, latency_ns));
        self.held.push((monotonic_ns() + latency_ns, completion));
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let (first, start_ns) = (out.len(), monotonic_ns());
        loop {
            let waited = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
            let left = wait.unwrap_or_default().saturating_sub(waited);
            let due_ns = self.held.iter().map(|(due_ns, _)| *due_ns).min();
            let due = due_ns.map_or(left, |due_ns| {
                left.min(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())))
            });
            let pause = if self.done.is_empty() { due } else { Duration::ZERO };
            if self.inner.in_flight() == 0 {
                std::thread::sleep(if self.held.is_empty() { Duration::ZERO } else { pause });
            }
            self.take(pause, out);
            if out.len() > first || left.is_zero() || self.in_flight() == 0 {
                return;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.done.len() + self.held.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let mut faults = self.faults.lock();
        let fault = faults.next(Operation::Read, offset, into.len());
        std::thread::sleep(Duration::from_nanos(latency_of(fault)));
        let size = self.inner.size_bytes();
        faulty_read(fault, (offset, into), size, &mut faults.random, |offset, into| {
            self.inner.read_at(offset, into)
        })
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        assert_range(offset, data.len(), self.size_bytes());
        let fault = self.faults.lock().next(Operation::Write, offset, data.len());
        std::thread::sleep(Duration::from_nanos(latency_of(fault)));
        match fault {
            None => self.inner.write_at(offset, data),
            Some(fault) => self.write_faulty(fault, offset, data),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let fault = self.faults.lock().next(Operation::Flush, 0, 0);
        std::thread::sleep(Duration::from_nanos(latency_of(fault)));
        fault.and_then(faulty_flush).unwrap_or_else(|| self.inner.flush())
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}
