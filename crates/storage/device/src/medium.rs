//! What lies on a modelled disk: durable rows, versions of them that no flush has covered, and what
//! a crash leaves of both.
//!
//! A write is one of three things: in flight (its disk holds it), cached (completed, not covered by
//! a flush) or durable. Reads may see more than that: what a failed flush has left in memory alone,
//! and rows of writes in flight.
//! Rows never written have their original content, zeros or computed, so that
//! a disk of many terabytes needs memory only for what was written. Time and faults are not here.

use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustix::io::Errno;
use units::Random;

use crate::{Error, ROW_SIZE, to_u64, to_usize};

/// The smallest unit that any disk writes whole, and so the unit of a torn row.
const SECTOR_SIZE: usize = 512;
const SECTORS_PER_ROW: u64 = 8;

/// How the power went, and with it what became of writes that no flush covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Only the process died: every submitted write arrives in the cache, and the cache survives,
    /// as volatile as before.
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
    /// Each write on its own arrived as a whole, not at all, or up to one of its sectors.
    Writes {
        /// Chooses what survives.
        seed: u64,
    },
}

type Row = Arc<[u8; ROW_SIZE]>;

/// Fills a row with what lay at this offset before anything was written.
type Original = dyn Fn(u64, &mut [u8; ROW_SIZE]) + Send + Sync;

/// One write, or the part of it that a fault lets through.
#[derive(Debug)]
pub(crate) struct Write {
    /// In order of submission.
    number: u64,
    first_row: u64,
    /// Empty where the disk forgets what is written.
    rows: Vec<Row>,
}

/// One row of a write that is not durable yet.
#[derive(Clone, Debug)]
struct Version {
    /// Completions up to that of the write: what a flush goes by. In flight: beyond all flushes.
    completed: u64,
    write: Arc<Write>,
    index: usize,
}

#[derive(Clone)]
pub(crate) struct Medium {
    original: Option<Arc<Original>>,
    forgotten: Range<u64>,
    durable: BTreeMap<u64, Row>,
    /// Every version since the last flush, oldest first.
    cached: BTreeMap<u64, Vec<Version>>,
    /// What reads show, though it is neither durable nor will ever be.
    phantoms: BTreeMap<u64, Row>,
    /// Rows of writes in flight that reads show already.
    early: BTreeMap<u64, Row>,
    /// Rows that cannot be read until they are written again.
    unreadable: BTreeSet<u64>,
    completed: u64,
    submitted: u64,
    zeros: Row,
}

impl Default for Medium {
    fn default() -> Self {
        Self {
            original: None,
            forgotten: 0..0,
            durable: BTreeMap::new(),
            cached: BTreeMap::new(),
            phantoms: BTreeMap::new(),
            early: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            completed: 0,
            submitted: 0,
            zeros: Arc::new([0; ROW_SIZE]),
        }
    }
}

impl Medium {
    pub(crate) fn set_original(&mut self, original: Arc<Original>) {
        self.original = Some(original);
    }

    /// Bytes in this range are not kept: what is written there reads as it was before.
    pub(crate) fn forget(&mut self, bytes: Range<u64>) {
        let row = to_u64(ROW_SIZE);
        self.forgotten = bytes.start.div_ceil(row)..bytes.end / row;
    }

    /// Takes in the bytes of a write that is in flight from here on.
    pub(crate) fn submit(&mut self, offset: u64, data: &[u8]) -> Arc<Write> {
        self.submitted += 1;
        let first_row = offset / to_u64(ROW_SIZE);
        let end_row = first_row + to_u64(data.len() / ROW_SIZE);
        let forgotten = self.forgotten.contains(&first_row) && end_row <= self.forgotten.end;
        let rows = if forgotten { Vec::new() } else { self.rows_of(data) };
        Arc::new(Write { number: self.submitted, first_row, rows })
    }

    /// The same of zeros.
    pub(crate) fn submit_zeros(&mut self, offset: u64, len: u64) -> Arc<Write> {
        self.submitted += 1;
        let (first_row, count) = (offset / to_u64(ROW_SIZE), to_usize(len) / ROW_SIZE);
        let forgotten = self.forgotten.contains(&first_row);
        let rows = vec![Arc::clone(&self.zeros); if forgotten { 0 } else { count }];
        Arc::new(Write { number: self.submitted, first_row, rows })
    }

    /// Rows of zeros, and rows like the one before them, take no memory of their own.
    fn rows_of(&self, data: &[u8]) -> Vec<Row> {
        let mut last = Arc::clone(&self.zeros);
        let rows = data.chunks_exact(ROW_SIZE).map(|bytes| {
            let bytes = bytes.first_chunk().expect("chunks are whole rows");
            if *last != *bytes {
                last = if *bytes == *self.zeros { self.zeros.clone() } else { Arc::new(*bytes) };
            }
            Arc::clone(&last)
        });
        rows.collect()
    }

    /// The write has completed: it is what a read sees, and volatile.
    pub(crate) fn complete(&mut self, write: &Arc<Write>) {
        self.completed += 1;
        let completed = self.completed;
        for (row, version) in versions_of(write, completed) {
            self.unreadable.remove(&row);
            self.phantoms.remove(&row);
            self.early.remove(&row);
            self.cached.entry(row).or_default().push(version);
        }
    }

    /// Completions so far: what a flush that begins now will cover.
    pub(crate) fn completed(&self) -> u64 {
        self.completed
    }

    /// Makes the writes of the first `completed` completions durable.
    pub(crate) fn flush(&mut self, completed: u64) {
        let durable = &mut self.durable;
        self.cached.retain(|&row, versions| {
            let covered = versions.partition_point(|version| version.completed <= completed);
            if let Some(newest) = versions.drain(..covered).next_back() {
                durable.insert(row, Arc::clone(newest.row()));
            }
            !versions.is_empty()
        });
    }

    /// A flush has failed: what it should have covered became durable or never will, row by row.
    /// The rows are called written all the same, and reads show them.
    pub(crate) fn abandon(&mut self, random: &mut Random) {
        for (row, mut versions) in core::mem::take(&mut self.cached) {
            let Some(newest) = versions.pop() else { continue };
            let is_durable = random.below(4) == 0;
            let to = if is_durable { &mut self.durable } else { &mut self.phantoms };
            to.insert(row, Arc::clone(newest.row()));
        }
    }

    /// Reads show what is there.
    pub(crate) fn forget_phantoms(&mut self) {
        self.phantoms.clear();
    }

    /// Some rows of a write in flight can be read, one of them perhaps only in part.
    pub(crate) fn show_some(&mut self, write: &Arc<Write>, random: &mut Random) {
        let most = to_u64(write.rows.len());
        for _ in 0..if most == 0 { 0 } else { random.below(4) } {
            let index = random.below(most);
            let row = write.first_row + index;
            let new = write.rows.get(to_usize(index)).expect("below their number");
            let sectors = random.below(2 * SECTORS_PER_ROW).min(SECTORS_PER_ROW);
            let shown = if sectors == SECTORS_PER_ROW || self.unreadable.contains(&row) {
                Arc::clone(new)
            } else {
                let mut mixed = *self.current(row);
                let bytes = to_usize(sectors) * SECTOR_SIZE;
                let (to, from) = (mixed.get_mut(..bytes), new.get(..bytes));
                let (to, from) = to.zip(from).expect("a row has eight sectors");
                to.copy_from_slice(from);
                Arc::new(mixed)
            };
            self.unreadable.remove(&row);
            self.early.insert(row, shown);
        }
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        for (row, part) in (offset / to_u64(ROW_SIZE)..).zip(into.chunks_exact_mut(ROW_SIZE)) {
            if self.unreadable.contains(&row) {
                return Err(Error::io("read", row * to_u64(ROW_SIZE), Errno::IO));
            }
            part.copy_from_slice(self.current(row).as_slice());
        }
        Ok(())
    }

    fn current(&self, row: u64) -> Row {
        if let Some(shown) = self.early.get(&row) {
            return Arc::clone(shown);
        }
        let cached = self.cached.get(&row).and_then(|versions| versions.last());
        if let (None, Some(phantom)) = (cached, self.phantoms.get(&row)) {
            return Arc::clone(phantom);
        }
        cached.map_or_else(|| self.durable(row), |version| Arc::clone(version.row()))
    }

    fn durable(&self, row: u64) -> Row {
        if let Some(row) = self.durable.get(&row) {
            return Arc::clone(row);
        }
        let Some(original) = &self.original else { return Arc::clone(&self.zeros) };
        let mut bytes = [0; ROW_SIZE];
        original(row * to_u64(ROW_SIZE), &mut bytes);
        Arc::new(bytes)
    }

    /// Changes a row durably, unnoticed by the volume.
    pub(crate) fn damage(&mut self, row: u64, change: impl FnOnce(&mut [u8; ROW_SIZE])) {
        let mut bytes = *self.current(row);
        change(&mut bytes);
        self.cached.remove(&row);
        self.phantoms.remove(&row);
        self.early.remove(&row);
        self.durable.insert(row, Arc::new(bytes));
    }

    /// Makes a row unreadable until it is written again.
    pub(crate) fn spoil(&mut self, row: u64) {
        self.unreadable.insert(row);
    }

    /// The medium as a crash may leave it, with `in_flight` in order of submission.
    pub(crate) fn crash<'a>(
        &self,
        crash: Crash,
        in_flight: impl Iterator<Item = &'a Arc<Write>>,
    ) -> Self {
        let mut after = self.clone();
        after.early.clear();
        if crash == Crash::Kill {
            in_flight.for_each(|write| after.complete(write));
            return after;
        }
        after.phantoms.clear();
        let mut versions = core::mem::take(&mut after.cached);
        for (row, version) in in_flight.flat_map(|write| versions_of(write, u64::MAX)) {
            versions.entry(row).or_default().push(version);
        }
        for (row, versions) in versions {
            let survivor = survivor(crash, row, self.durable(row), &versions);
            after.durable.insert(row, survivor);
        }
        after
    }
}

fn versions_of(write: &Arc<Write>, completed: u64) -> impl Iterator<Item = (u64, Version)> {
    let rows = (write.first_row..).zip(0..write.rows.len());
    rows.map(move |(row, index)| (row, Version { completed, write: Arc::clone(write), index }))
}

impl Version {
    fn row(&self) -> &Row {
        self.write.rows.get(self.index).expect("a version is a row of its write")
    }

    /// Sectors of this row that arrived when each write arrives as far as it came.
    fn sectors_arrived(&self, seed: u64) -> usize {
        let sectors = to_u64(self.write.rows.len()) * SECTORS_PER_ROW;
        let mut random = Random::of(seed, self.write.number);
        let arrived = match random.below(3) {
            0 => 0,
            1 => sectors,
            _ => random.below(sectors + 1),
        };
        let before = to_u64(self.index) * SECTORS_PER_ROW;
        to_usize(arrived.saturating_sub(before).min(SECTORS_PER_ROW))
    }
}

/// What a crash leaves of one row that had unflushed versions.
fn survivor(crash: Crash, row: u64, before: Row, versions: &[Version]) -> Row {
    let pick = |random: &mut Random| {
        let choice = random.below(to_u64(versions.len()) + 1);
        let version = choice.checked_sub(1).and_then(|index| versions.get(to_usize(index)));
        version.map_or(&before, Version::row)
    };
    let mut torn = *before;
    match crash {
        Crash::Kill | Crash::LoseAll => return before,
        Crash::Rows { seed } => return Arc::clone(pick(&mut Random::of(seed, row))),
        Crash::Sectors { seed } => {
            let mut random = Random::of(seed, row);
            for (index, sector) in torn.chunks_exact_mut(SECTOR_SIZE).enumerate() {
                let from = pick(&mut random).chunks_exact(SECTOR_SIZE).nth(index);
                sector.copy_from_slice(from.expect("all rows have the same sectors"));
            }
        }
        Crash::Writes { seed } => {
            for version in versions {
                let arrived = version.sectors_arrived(seed) * SECTOR_SIZE;
                let (to, from) = (torn.get_mut(..arrived), version.row().get(..arrived));
                let sectors = to.zip(from).expect("a row has eight sectors");
                sectors.0.copy_from_slice(sectors.1);
            }
        }
    }
    Arc::new(torn)
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Medium")
            .field("durable_rows", &self.durable.len())
            .field("cached_rows", &self.cached.len())
            .finish_non_exhaustive()
    }
}
