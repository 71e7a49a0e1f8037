//! A sparse disk in memory with a volatile cache, for tests and simulation.
//!
//! Three states of a write: submitted (not yet reaped), cached (reaped, not flushed) and durable.
//! Time does not pass here: [`Device::reap`] completes what was submitted, all of it in order or,
//! with a seed, some of it in any order. [`Memory::crash`] gives the disk as it may be found after
//! a power cut, sector by sector, and leaves this one as it is, so that one run yields any number
//! of crashes.
//!
//! Clones are handles on the same disk: one goes to the volume, one stays with the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core::time::Duration;

use crate::{Completion, Device, Error, ROW_SIZE, ReadAt, Shared, assert_range, to_u64, to_usize};

/// The smallest unit that any disk writes whole, and so the unit of a torn row.
const SECTOR_SIZE: usize = 512;

/// How the power went, and with it what became of writes that no flush covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Only the process died: every submitted write arrives, the cache survives.
    Kill,
    /// Nothing that was not flushed survives.
    LoseAll,
    /// Each row on its own survives in any version since its last flush, whole.
    Rows {
        /// Chooses what survives.
        seed: u64,
    },
    /// Each 512-byte sector on its own survives in any version since its last flush: rows are torn.
    Sectors {
        /// Chooses what survives.
        seed: u64,
    },
}

/// What was asked of a [`Memory`] so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations {
    /// Reads.
    pub reads: u64,
    /// Writes, both kinds, failed ones included.
    pub writes: u64,
    /// Flushes, both kinds, failed ones included.
    pub flushes: u64,
    /// Bytes in `writes`.
    pub written_bytes: u64,
}

impl Operations {
    /// Writes and flushes: the count that [`Memory::fail_at`] goes by.
    pub fn mutations(&self) -> u64 {
        self.writes + self.flushes
    }
}

/// A handle on a disk in memory.
#[derive(Clone, Debug)]
pub struct Memory {
    size_bytes: u64,
    disk: Arc<Mutex<Disk>>,
}

type Row = Arc<[u8; ROW_SIZE]>;

#[derive(Clone, Debug, Default)]
struct Disk {
    durable: BTreeMap<u64, Row>,
    /// Every version since the last flush, oldest first, with the number of completions before it.
    cached: BTreeMap<u64, Vec<(u64, Row)>>,
    submitted: Vec<Submitted>,
    completed: u64,
    operations: Operations,
    failure: Option<PlannedFailure>,
    reorder: Option<Random>,
}

#[derive(Clone, Debug)]
struct Submitted {
    token: u64,
    failed: bool,
    operation: Operation,
}

#[derive(Clone, Debug)]
enum Operation {
    Write {
        offset: u64,
        rows: Vec<Row>,
    },
    /// Covers the writes completed when it was submitted.
    Flush {
        completed: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct PlannedFailure {
    mutation: u64,
    persistent: bool,
}

impl Memory {
    /// A disk of `size_bytes` zeros, a multiple of [`ROW_SIZE`].
    ///
    /// # Panics
    /// If the size is no positive multiple of [`ROW_SIZE`].
    pub fn new(size_bytes: u64) -> Self {
        assert!(size_bytes > 0 && size_bytes.is_multiple_of(to_u64(ROW_SIZE)), "whole rows");
        Self::from_disk(size_bytes, Disk::default())
    }

    fn from_disk(size_bytes: u64, disk: Disk) -> Self {
        Self { size_bytes, disk: Arc::new(Mutex::new(disk)) }
    }

    /// From here on a reap completes some of the submitted operations, in any order, as `seed`
    /// wills.
    #[must_use]
    pub fn with_reordering(self, seed: u64) -> Self {
        self.lock().reorder = Some(Random(seed));
        self
    }

    /// A second disk with the same content, cache and operations in flight.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self::from_disk(self.size_bytes, self.lock().clone())
    }

    /// The disk as it may be found after a crash at this moment: everything on it durable, nothing
    /// in flight, counts at zero, no failure planned. This one stays as it is.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> Self {
        let disk = self.lock();
        let mut durable = disk.durable.clone();
        for (&row, versions) in &disk.versions() {
            let before = disk.durable.get(&row).cloned().unwrap_or_else(zeros);
            durable.insert(row, survivor(crash, row, &before, versions));
        }
        Self::from_disk(self.size_bytes, Disk { durable, ..Disk::default() })
    }

    /// What was asked of this disk so far.
    pub fn operations(&self) -> Operations {
        self.lock().operations
    }

    /// The mutation with this number (the first is 0) fails with EIO and leaves the disk as it was;
    /// when `persistent`, so does every later one.
    pub fn fail_at(&self, mutation: u64, persistent: bool) {
        self.lock().failure = Some(PlannedFailure { mutation, persistent });
    }

    /// Changes the row at `offset` behind everybody's back: damage, or the work of another program.
    ///
    /// # Panics
    /// If `offset` is not that of a row of this disk.
    pub fn damage(&self, offset: u64, change: impl FnOnce(&mut [u8; ROW_SIZE])) {
        assert_range(offset, ROW_SIZE, self.size_bytes);
        let (mut disk, row) = (self.lock(), offset / to_u64(ROW_SIZE));
        let mut bytes = *disk.current(row);
        change(&mut bytes);
        disk.cached.remove(&row);
        disk.durable.insert(row, Arc::new(bytes));
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        assert_range(offset, into.len(), self.size_bytes);
        let mut disk = self.lock();
        disk.operations.reads += 1;
        for (row, part) in (offset / to_u64(ROW_SIZE)..).zip(into.chunks_exact_mut(ROW_SIZE)) {
            part.copy_from_slice(disk.current(row).as_slice());
        }
    }
}

impl Disk {
    fn current(&self, row: u64) -> Row {
        let cached = self.cached.get(&row).and_then(|versions| versions.last());
        cached.map(|(_, row)| row).or_else(|| self.durable.get(&row)).cloned().unwrap_or_else(zeros)
    }

    /// All that may yet reach the medium, by row, oldest first.
    fn versions(&self) -> BTreeMap<u64, Vec<Row>> {
        let mut all: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
        for (&row, versions) in &self.cached {
            all.insert(row, versions.iter().map(|(_, row)| Arc::clone(row)).collect());
        }
        for submitted in self.submitted.iter().filter(|submitted| !submitted.failed) {
            if let Operation::Write { offset, rows } = &submitted.operation {
                for (row, data) in (offset / to_u64(ROW_SIZE)..).zip(rows) {
                    all.entry(row).or_default().push(Arc::clone(data));
                }
            }
        }
        all
    }

    /// Counts a mutation and says whether it is the one to fail.
    fn fails(&mut self) -> bool {
        let number = self.operations.mutations();
        self.failure.is_some_and(|failure| {
            number == failure.mutation || (failure.persistent && number > failure.mutation)
        })
    }

    fn begin_write(&mut self, len: usize) -> bool {
        let failed = self.fails();
        self.operations.writes += 1;
        self.operations.written_bytes += to_u64(len);
        failed
    }

    fn begin_flush(&mut self) -> bool {
        let failed = self.fails();
        self.operations.flushes += 1;
        failed
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Write { offset, rows } => {
                self.completed += 1;
                for (row, data) in (offset / to_u64(ROW_SIZE)..).zip(rows) {
                    self.cached.entry(row).or_default().push((self.completed, data));
                }
            }
            Operation::Flush { completed } => {
                let durable = &mut self.durable;
                self.cached.retain(|&row, versions| {
                    let covered = versions.partition_point(|&(number, _)| number <= completed);
                    if let Some((_, newest)) = versions.drain(..covered).next_back() {
                        durable.insert(row, newest);
                    }
                    !versions.is_empty()
                });
            }
        }
    }

    fn complete(&mut self, index: usize, out: &mut Vec<Completion>) {
        let Submitted { token, failed, operation } = self.submitted.remove(index);
        let result = if failed { Err(injected(&operation)) } else { Ok(()) };
        if !failed {
            self.apply(operation);
        }
        out.push(Completion { token, result, latency_ns: 0 });
    }
}

fn injected(operation: &Operation) -> Error {
    match *operation {
        Operation::Write { offset, .. } => Error::io("write", offset, rustix::io::Errno::IO),
        Operation::Flush { .. } => Error::io("flush", 0, rustix::io::Errno::IO),
    }
}

fn zeros() -> Row {
    Arc::new([0; ROW_SIZE])
}

fn rows_of(data: &[u8]) -> Vec<Row> {
    let (rows, rest) = data.as_chunks();
    assert!(rest.is_empty(), "writes are whole rows");
    rows.iter().map(|row| Arc::new(*row)).collect()
}

/// What a row is found to hold: `before` is its durable version, `versions` the later ones.
fn survivor(crash: Crash, row: u64, before: &Row, versions: &[Row]) -> Row {
    let newest = versions.last().expect("a row without versions is not listed");
    let pick = |random: &mut Random| {
        let choice = random.below(to_u64(versions.len()) + 1);
        choice.checked_sub(1).and_then(|index| versions.get(to_usize(index))).unwrap_or(before)
    };
    match crash {
        Crash::Kill => Arc::clone(newest),
        Crash::LoseAll => Arc::clone(before),
        Crash::Rows { seed } => Arc::clone(pick(&mut Random::of_row(seed, row))),
        Crash::Sectors { seed } => {
            let mut random = Random::of_row(seed, row);
            let mut torn = **before;
            for (index, sector) in torn.chunks_exact_mut(SECTOR_SIZE).enumerate() {
                let from = pick(&mut random).chunks_exact(SECTOR_SIZE).nth(index);
                sector.copy_from_slice(from.expect("all rows have the same sectors"));
            }
            Arc::new(torn)
        }
    }
}

impl Device for Memory {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        assert_range(offset, len, self.size_bytes);
        let rows = rows_of(data.get(..len).expect("the length lies in the buffer"));
        let mut disk = self.lock();
        let failed = disk.begin_write(len);
        let operation = Operation::Write { offset, rows };
        disk.submitted.push(Submitted { token, failed, operation });
    }

    fn submit_flush(&mut self, token: u64) {
        let mut disk = self.lock();
        let failed = disk.begin_flush();
        let operation = Operation::Flush { completed: disk.completed };
        disk.submitted.push(Submitted { token, failed, operation });
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let mut disk = self.lock();
        let Some(mut random) = disk.reorder.take() else {
            while !disk.submitted.is_empty() {
                disk.complete(0, out);
            }
            return;
        };
        let waiting = to_u64(disk.submitted.len());
        let least = u64::from(wait.is_some()).min(waiting);
        for _ in 0..least + random.below(waiting - least + 1) {
            let index = to_usize(random.below(to_u64(disk.submitted.len())));
            disk.complete(index, out);
        }
        disk.reorder = Some(random);
    }

    fn in_flight(&self) -> usize {
        self.lock().submitted.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.read(offset, into);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        assert_range(offset, data.len(), self.size_bytes);
        let mut disk = self.lock();
        let failed = disk.begin_write(data.len());
        let operation = Operation::Write { offset, rows: rows_of(data) };
        if failed {
            return Err(injected(&operation));
        }
        disk.apply(operation);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let mut disk = self.lock();
        let failed = disk.begin_flush();
        let operation = Operation::Flush { completed: disk.completed };
        if failed {
            return Err(injected(&operation));
        }
        disk.apply(operation);
        Ok(())
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

impl ReadAt for Memory {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.read(offset, into);
        Ok(())
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): enough to choose faults, reproducible everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A row's fate depends on the seed and the row alone, not on what else was written.
    fn of_row(seed: u64, row: u64) -> Self {
        Self(Self(seed).next() ^ row)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `bound`, which is not 0. The bias is below 2^-40 for the bounds used here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
