//! A device that goes wrong on purpose: every fault that a volume must survive or report.
//!
//! The script names mutations (writes and flushes, counted from 0) and what happens to them. A
//! faulty write is applied to the inner device at submission and completed at the next reap, so
//! that its effect is exact.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::memory::Random;
use crate::{Completion, Device, Error, ROW_SIZE, Shared, assert_range, to_u64, to_usize};

/// What happens to one write or flush. A fault of the other kind of operation leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with EIO and changes nothing; the next one may succeed.
    Error,
    /// The first `rows` of a write arrive, then it fails with EIO.
    Short {
        /// Rows that arrive.
        rows: usize,
    },
    /// A subset of a write's rows arrives, and it is reported as done.
    Torn {
        /// Chooses the rows.
        seed: u64,
    },
    /// A write is reported as done and never arrives.
    Lost,
    /// A write arrives this many rows away (wrapping round the device), and is reported as done.
    Misdirected {
        /// The distance.
        rows: u64,
    },
    /// A write arrives with one bit flipped.
    BitRot {
        /// Which bit, modulo the length of the write.
        bit: u64,
    },
    /// The operation is done, and takes this much longer.
    Slow {
        /// Added to the latency; no time passes.
        latency_ns: u64,
    },
    /// A flush is reported as done without being done.
    LyingFlush,
}

/// A device with a script of faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Box<dyn Device>,
    script: BTreeMap<u64, Fault>,
    mutations: u64,
    done: Vec<Completion>,
    /// Added latency by token.
    slow: BTreeMap<u64, u64>,
}

impl Faulty {
    /// Wraps a device. The script's keys are numbers of mutations.
    pub fn new(inner: Box<dyn Device>, script: BTreeMap<u64, Fault>) -> Self {
        Self { inner, script, mutations: 0, done: Vec::new(), slow: BTreeMap::new() }
    }

    /// A script for the first `mutations`, of which about one in `one_in` goes wrong in any way.
    pub fn script(seed: u64, mutations: u64, one_in: u64) -> BTreeMap<u64, Fault> {
        let mut random = Random(seed);
        let mut script = BTreeMap::new();
        for mutation in 0..mutations {
            if random.below(one_in) == 0 {
                script.insert(mutation, any_fault(&mut random));
            }
        }
        script
    }

    fn next_fault(&mut self) -> Option<Fault> {
        let fault = self.script.get(&self.mutations).copied();
        self.mutations += 1;
        fault
    }

    /// Does a write as the fault wills. `None`: the fault does not concern writes.
    fn faulty_write(
        &mut self,
        fault: Fault,
        offset: u64,
        data: &[u8],
    ) -> Option<Result<(), Error>> {
        let failure = Error::io("write", offset, rustix::io::Errno::IO);
        Some(match fault {
            Fault::Slow { .. } | Fault::LyingFlush => return None,
            Fault::Error => Err(failure),
            Fault::Lost => Ok(()),
            Fault::Short { rows } => {
                let arrived = data.chunks(ROW_SIZE).enumerate().filter(|&(row, _)| row < rows);
                self.write_rows(offset, arrived).and(Err(failure))
            }
            Fault::Torn { seed } => {
                let mut random = Random(seed);
                let rows = data.chunks(ROW_SIZE).enumerate().filter(|_| random.below(2) == 0);
                self.write_rows(offset, rows)
            }
            Fault::Misdirected { rows } => {
                let slots = self.size_bytes() - to_u64(data.len()) + to_u64(ROW_SIZE);
                let elsewhere = (offset + rows * to_u64(ROW_SIZE)) % slots;
                self.inner.write_at(elsewhere, data)
            }
            Fault::BitRot { bit } => {
                let bit = to_usize(bit % (to_u64(data.len()) * 8));
                let mut rotten = data.to_vec();
                let byte = rotten.get_mut(bit / 8).expect("the bit lies in the write");
                *byte ^= 1 << (bit % 8);
                self.inner.write_at(offset, &rotten)
            }
        })
    }

    fn write_rows<'a>(
        &mut self,
        offset: u64,
        rows: impl Iterator<Item = (usize, &'a [u8])>,
    ) -> Result<(), Error> {
        for (row, data) in rows {
            self.inner.write_at(offset + to_u64(row * ROW_SIZE), data)?;
        }
        Ok(())
    }
}

fn any_fault(random: &mut Random) -> Fault {
    match random.below(8) {
        0 => Fault::Error,
        1 => Fault::Short { rows: to_usize(random.below(4)) },
        2 => Fault::Torn { seed: random.next() },
        3 => Fault::Lost,
        4 => Fault::Misdirected { rows: 1 + random.below(64) },
        5 => Fault::BitRot { bit: random.next() },
        6 => Fault::Slow { latency_ns: 1_000_000 << random.below(12) },
        _ => Fault::LyingFlush,
    }
}

/// What a fault does to a flush. `None`: the fault does not concern flushes.
fn faulty_flush(fault: Fault) -> Option<Result<(), Error>> {
    match fault {
        Fault::Error => Some(Err(Error::io("flush", 0, rustix::io::Errno::IO))),
        Fault::LyingFlush => Some(Ok(())),
        _ => None,
    }
}

impl Device for Faulty {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        assert_range(offset, len, self.size_bytes());
        let fault = self.next_fault();
        let bytes = data.get(..len).expect("the length lies in the buffer");
        if let Some(result) = fault.and_then(|fault| self.faulty_write(fault, offset, bytes)) {
            self.done.push(Completion { token, result, latency_ns: 0 });
            return;
        }
        if let Some(Fault::Slow { latency_ns }) = fault {
            self.slow.insert(token, latency_ns);
        }
        self.inner.submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        let fault = self.next_fault();
        if let Some(result) = fault.and_then(faulty_flush) {
            self.done.push(Completion { token, result, latency_ns: 0 });
            return;
        }
        if let Some(Fault::Slow { latency_ns }) = fault {
            self.slow.insert(token, latency_ns);
        }
        self.inner.submit_flush(token);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let wait = if self.done.is_empty() { wait } else { None };
        let first = out.len();
        self.inner.reap(wait, out);
        for completion in out.iter_mut().skip(first) {
            completion.latency_ns += self.slow.remove(&completion.token).unwrap_or(0);
        }
        out.append(&mut self.done);
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.done.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        assert_range(offset, data.len(), self.size_bytes());
        let fault = self.next_fault();
        fault
            .and_then(|fault| self.faulty_write(fault, offset, data))
            .unwrap_or_else(|| self.inner.write_at(offset, data))
    }

    fn flush(&mut self) -> Result<(), Error> {
        let fault = self.next_fault();
        fault.and_then(faulty_flush).unwrap_or_else(|| self.inner.flush())
    }

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}
