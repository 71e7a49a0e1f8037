//! A disk in memory: what it holds, how long it takes, and what goes wrong with it.
//!
//! Contents are sparse ([`Timing::instant`] and small sizes for tests of what is stored, computed
//! contents or none for disks of many terabytes). A write is in flight until it is reaped, then
//! cached until a flush covers it (at once without a write cache), then durable.
//! [`Modelled::crash`] gives the disk as a kill or a power cut may leave it and leaves this one as
//! it is, so that one run yields any number of crashes. Time is that of a [`Timeline`]: a blocking
//! call moves it on, a submission is done when the time it takes has passed. One seed, one run.
//!
//! Clones are handles on the same disk, as from opening it anew: one goes to the volume, one stays
//! with the test. A handle on a disk that vanished is good for nothing, also when the disk is back.

mod disk;
mod mechanics;
mod profile;
mod work;

use core::ops::Range;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};

use stage::lock;
use units::{Random, Timestamp};

use crate::fault::flip_a_bit;
use crate::{
    Completion, Crash, Device, Error, LentRead, PATIENCE, ROW_SIZE, ReadAt, Reading, Rule, Shared,
    Timeline, assert_range, to_u64, to_usize,
};

use disk::{Disk, Outcome, Payload};
pub use mechanics::Timing;
pub use profile::{ProfileError, ZoneProfile};
pub use work::Work;

/// A handle on a modelled disk.
#[derive(Debug)]
pub struct Modelled {
    size_bytes: u64,
    timeline: Timeline,
    disk: Arc<Mutex<Disk>>,
    /// Who gets the completions of what this handle submits.
    port: u32,
    /// How often the disk had vanished when it was opened.
    opened: u64,
}

impl Clone for Modelled {
    fn clone(&self) -> Self {
        let (size_bytes, port, opened) = (self.size_bytes, self.port, self.lock().vanished);
        let (timeline, disk) = (self.timeline.clone(), Arc::clone(&self.disk));
        Self { size_bytes, timeline, disk, port, opened }
    }
}

impl Modelled {
    /// A disk of `size_bytes` zeros, a multiple of [`ROW_SIZE`]. `seed` decides all that is left to
    /// chance: turns of the platter, and faults.
    ///
    /// # Panics
    /// If the size is no positive multiple of [`ROW_SIZE`].
    pub fn new(size_bytes: u64, timing: Timing, timeline: &Timeline, seed: u64) -> Self {
        assert!(size_bytes > 0 && size_bytes.is_multiple_of(to_u64(ROW_SIZE)), "whole rows");
        Self::from_disk(size_bytes, timeline, Disk::new(timing, seed))
    }

    /// A disk of zeros that takes no time, on a timeline of its own.
    ///
    /// # Panics
    /// As [`Modelled::new`].
    pub fn instant(size_bytes: u64) -> Self {
        Self::new(size_bytes, Timing::instant(), &Timeline::new(Timestamp(0)), 0)
    }

    fn from_disk(size_bytes: u64, timeline: &Timeline, disk: Disk) -> Self {
        let (timeline, opened) = (timeline.clone(), disk.vanished);
        Self { size_bytes, timeline, disk: Arc::new(Mutex::new(disk)), port: 0, opened }
    }

    /// From here on a reap completes only some of what is done, in any order, as `seed` wills.
    #[must_use]
    pub fn with_reordering(self, seed: u64) -> Self {
        let mut disk = self.lock();
        disk.reordered = true;
        disk.faults.random = Random::new(seed);
        drop(disk);
        self
    }

    /// From here on reads see rows of writes in flight, one by one, before they are done.
    pub fn show_gradually(&self) {
        self.lock().gradual = true;
    }

    /// Operations that met a fault so far.
    pub fn strikes(&self) -> u64 {
        self.lock().faults.strikes
    }

    /// Reads come from the medium again, as for who opens a file and has its pages dropped: what
    /// [`crate::Fault::FlushForgets`] kept from it is gone.
    pub fn forget_cached(&self) {
        self.lock().medium.forget_phantoms();
    }

    /// A handle on the same disk whose completions are its own, as on another machine. Handles have
    /// port 0, and clones that of the handle.
    #[must_use]
    pub fn at_port(&self, port: u32) -> Self {
        Self { port, ..self.clone() }
    }

    /// Rows never written hold what this computes from their offset.
    #[must_use]
    pub fn with_original(
        self,
        original: impl Fn(u64, &mut [u8; ROW_SIZE]) + Send + Sync + 'static,
    ) -> Self {
        self.lock().medium.set_original(Arc::new(original));
        self
    }

    /// Writes that lie in this range of bytes take their time and leave no trace: days of recording
    /// need no memory.
    #[must_use]
    pub fn forgetting(self, bytes: Range<u64>) -> Self {
        self.lock().medium.forget(bytes);
        self
    }

    /// A second disk with the same content, cache, rules and operations in flight.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let disk = self.lock().clone();
        Self::from_disk(self.size_bytes, &self.timeline, disk)
    }

    /// The disk as it may be found after a crash at this moment: nothing in flight, no rules,
    /// nothing counted, at rest. This one stays as it is.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> Self {
        let disk = self.lock();
        let after = Self::new(self.size_bytes, disk.timing.clone(), &self.timeline, 0);
        after.lock().medium = disk.crashed(crash);
        after
    }

    /// What was asked of this disk so far.
    pub fn work(&self) -> Work {
        let disk = self.lock();
        Work { jumps: disk.mechanics.jumps(), ..disk.work }
    }

    /// The time this disk lives in.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// From the next operation on, this may go wrong.
    pub fn add_rule(&self, rule: Rule) {
        self.lock().faults.add(rule);
    }

    /// Nothing goes wrong any more; what went wrong stays so.
    pub fn clear_rules(&self) {
        self.lock().faults.clear();
    }

    /// Where writes with [`crate::Fault::OtherDisk`] end up.
    ///
    /// # Panics
    /// If it is this disk, or smaller.
    pub fn set_other(&self, other: &Self) {
        assert!(!Arc::ptr_eq(&self.disk, &other.disk), "another disk is not this one");
        assert!(other.size_bytes >= self.size_bytes, "the other disk has every offset of this one");
        self.lock().other = Some(Arc::clone(&other.disk));
    }

    /// Nothing is done for so long, what is in flight included.
    pub fn stall(&self, ns: u64) {
        for done_ns in self.lock().stall(self.timeline.now_ns(), ns) {
            self.timeline.wake_at(done_ns);
        }
    }

    /// When a disk that stalls answers again, nanoseconds of its timeline.
    pub fn answers_from_ns(&self) -> i64 {
        let disk = self.lock();
        disk.hangs_until_ns.max(disk.overdue_until_ns)
    }

    /// The disk is gone: all that is in flight and all that follows fails with ENODEV. `crash` says
    /// what it will hold when it comes back.
    pub fn vanish(&self, crash: Crash) {
        self.lock().vanish(self.timeline.now_ns(), crash);
    }

    /// A vanished disk is there again, as it was when it vanished.
    pub fn come_back(&self) {
        self.lock().absent = false;
    }

    /// The content becomes that of an earlier [`Modelled::snapshot`], cache included.
    ///
    /// # Panics
    /// If the snapshot is this disk or of another size.
    pub fn roll_back(&self, snapshot: &Self) {
        assert_eq!(self.size_bytes, snapshot.size_bytes, "a disk keeps its size");
        assert!(!Arc::ptr_eq(&self.disk, &snapshot.disk), "a snapshot is another disk");
        let medium = snapshot.lock().medium.clone();
        self.lock().medium = medium;
    }

    /// Changes the row at `offset` unnoticed by the volume: damage, or the work of another program.
    ///
    /// # Panics
    /// If `offset` is not that of a row of this disk.
    pub fn damage(&self, offset: u64, change: impl FnOnce(&mut [u8; ROW_SIZE])) {
        assert_range(offset, ROW_SIZE, self.size_bytes);
        self.lock().medium.damage(offset / to_u64(ROW_SIZE), change);
    }

    /// One random bit of the row at `offset` flips.
    ///
    /// # Panics
    /// As [`Modelled::damage`].
    pub fn rot(&self, offset: u64) {
        assert_range(offset, ROW_SIZE, self.size_bytes);
        let mut disk = self.lock();
        let Disk { medium, faults, .. } = &mut *disk;
        medium.damage(offset / to_u64(ROW_SIZE), |row| flip_a_bit(row, &mut faults.random));
    }

    /// The row at `offset` cannot be read until it is written again: a latent sector error.
    ///
    /// # Panics
    /// As [`Modelled::damage`].
    pub fn spoil(&self, offset: u64) {
        assert_range(offset, ROW_SIZE, self.size_bytes);
        self.lock().medium.spoil(offset / to_u64(ROW_SIZE));
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }

    /// When something is asked of the disk, and by which opening of it.
    fn asked(&self) -> (i64, u64) {
        (self.timeline.now_ns(), self.opened)
    }

    fn submit(&self, token: u64, outcome: Outcome, payload: Payload) {
        self.timeline.wake_at(outcome.done_ns);
        let from = (self.port, token);
        self.lock().submit((from, self.timeline.now_ns()), outcome, payload);
    }

    /// Waits for one operation: time passes. One that hangs does what it does in its own time.
    fn carry_out(&self, outcome: Outcome) -> Result<(), Error> {
        let waited = self.wait_until(self.timeline.now_ns(), outcome.done_ns);
        self.lock().apply(outcome.action);
        waited.and(outcome.result)
    }

    /// As for a disk of the machine: one that hangs is left after [`PATIENCE`], and until it goes
    /// on no thread waits for it again. What takes its time is waited for.
    fn wait_until(&self, begun_ns: i64, done_ns: i64) -> Result<(), Error> {
        let patience_ns = i64::try_from(PATIENCE.as_nanos()).expect("it is seconds");
        let latest_ns = begun_ns.saturating_add(patience_ns);
        let mut disk = self.lock();
        let is_overdue = begun_ns < disk.overdue_until_ns;
        let hangs = begun_ns < disk.hangs_until_ns && done_ns > latest_ns;
        if !hangs && !is_overdue {
            drop(disk);
            self.timeline.wait_until(done_ns);
            return Ok(());
        }
        disk.overdue_until_ns = done_ns.max(disk.overdue_until_ns);
        drop(disk);
        if !is_overdue {
            self.timeline.wait_until(latest_ns);
        }
        Err(silent())
    }

    fn begin_write(&self, offset: u64, data: &[u8]) -> Outcome {
        assert_range(offset, data.len(), self.size_bytes);
        let mut disk = self.lock();
        let outcome = disk.write(self.asked(), (offset, data), self.size_bytes);
        let other = disk.other.clone().filter(|_| outcome.to_other);
        drop(disk);
        if let Some(other) = other {
            lock(&other).write_stray(offset, data);
        }
        outcome
    }

    fn begin_flush(&self) -> Outcome {
        self.lock().flush(self.asked())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        assert_range(offset, into.len(), self.size_bytes);
        let now_ns = self.timeline.now_ns();
        let (done_ns, result) =
            self.lock().read((now_ns, self.opened), (offset, into), self.size_bytes);
        self.wait_until(now_ns, done_ns)?;
        result
    }
}

fn silent() -> Error {
    Error::Silent { path: "modelled".into(), seconds: PATIENCE.as_secs() }
}

/// Reads that were begun together.
#[derive(Debug)]
struct UnderWay<'a> {
    on: &'a Modelled,
    begun_ns: i64,
    done_ns: i64,
    reads: Vec<LentRead>,
}

impl Reading for UnderWay<'_> {
    fn end(self: Box<Self>) -> Vec<LentRead> {
        let Self { on, begun_ns, done_ns, reads } = *self;
        match on.wait_until(begun_ns, done_ns) {
            Ok(()) => reads,
            Err(late) => LentRead::keep_all(reads.into_iter().map(|read| read.offset), &late),
        }
    }
}

impl Device for Modelled {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        let bytes = data.get(..len).expect("the length lies in the buffer");
        self.submit(token, self.begin_write(offset, bytes), Payload::Lent(data.clone()));
    }

    fn submit_flush(&mut self, token: u64) {
        self.submit(token, self.begin_flush(), Payload::Nothing);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        assert_range(offset, to_usize(len), self.size_bytes);
        let outcome = self.lock().discard(self.asked(), offset, len);
        self.submit(token, outcome, Payload::Nothing);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        let mut read = vec![0; len];
        assert_range(offset, len, self.size_bytes);
        let now_ns = self.timeline.now_ns();
        let (done_ns, result) =
            self.lock().read((now_ns, self.opened), (offset, &mut read), self.size_bytes);
        self.submit(token, Outcome::nothing(done_ns, result), Payload::Read(read));
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        let first_ns = self.lock().first_done_ns(self.port);
        if let (Some(wait), Some(first_ns)) = (wait, first_ns) {
            let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            let until_ns = self.timeline.now_ns().saturating_add_unsigned(wait_ns);
            self.timeline.wait_until(until_ns.min(first_ns));
        }
        self.lock().reap((self.port, self.timeline.now_ns()), wait.is_some(), out);
    }

    fn in_flight(&self) -> usize {
        self.lock().in_flight(self.port)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.read(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.carry_out(self.begin_write(offset, data))
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.carry_out(self.begin_flush())
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

impl ReadAt for Modelled {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn now_ns(&self) -> u64 {
        self.timeline.now_ns().unsigned_abs()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.read(offset, into)
    }

    fn begin<'a>(&'a self, mut reads: Vec<LentRead>) -> Box<dyn Reading + 'a> {
        let begun_ns = self.timeline.now_ns();
        let mut disk = self.lock();
        if begun_ns < disk.overdue_until_ns {
            drop(disk);
            return Box::new(LentRead::refuse_all(reads, &silent()));
        }
        let mut done_ns = begun_ns;
        for read in &mut reads {
            assert_range(read.offset, read.bytes.len(), self.size_bytes);
            let into = (read.offset, read.bytes.as_mut_slice());
            let (at_ns, result) = disk.read((begun_ns, self.opened), into, self.size_bytes);
            done_ns = done_ns.max(at_ns);
            read.result = result;
        }
        Box::new(UnderWay { on: self, begun_ns, done_ns, reads })
    }
}
