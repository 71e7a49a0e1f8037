//! Blocks out: every byte that a volume writes to or reads from a member goes through this crate.
//!
//! [`open`] gives the best writer that the machine allows, [`open_read`] a reader that takes no
//! lock and never writes. [`Modelled`] is a disk in memory, with a volatile cache, moving parts and
//! faults, on the virtual time of a [`Timeline`]: for tests, simulation and qualification;
//! [`Latched`], [`Faulty`], [`Metered`] and [`Watched`] wrap any device. No call waits longer than
//! [`PATIENCE`] for a disk that hangs. Not here: what the bytes
//! mean, and whether a target may be overwritten (`guard`).
//!
//! Invariants: offsets and lengths are multiples of [`ROW_SIZE`]; a buffer that the kernel may
//! still read is never given back to its [`Pool`]; after a failed write or sync nothing is written
//! any more.

mod batch;
mod beside;
mod bounded;
mod clock;
mod create;
mod discard;
mod error;
mod fault;
mod faulty;
mod guarded;
mod latched;
mod medium;
mod metered;
mod modelled;
mod open;
mod patience;
mod places;
mod pool;
mod range_lock;
mod rings;
mod storage;
mod target;
mod threads;
mod timeline;
mod uring;
mod watched;

use core::fmt;
use core::time::Duration;

use units::number::to_u64;

pub use beside::side_by_side;
pub use bounded::{Bounded, ReadBudget};
pub use create::{CreateOptions, create_file, remove_file};
pub use discard::discard;
pub use error::Error;
pub use fault::{Fault, MUTATIONS, OPERATIONS, Operation, Rule};
pub use faulty::{FaultSwitch, Faulty};
pub use latched::Latched;
pub use medium::Crash;
pub use metered::{Meter, MeterReader, Metered};
pub use modelled::{Modelled, ProfileError, Timing, Work, ZoneProfile};
pub use open::{Options, is_open_for_writing, open, open_read};
pub use patience::{PATIENCE, hear_stop, patiently, silent_paths};
pub use places::{files_in, linked_devices};
pub use pool::{Ahead, Buffer, Pool, Shared, SharedPool, SharedPoolError};
pub use rings::reserve_rings;
pub use storage::refuse_same_storage;
pub use timeline::Timeline;
pub use units::Histogram;
pub use watched::{Cell, Promise, SlowWrite, Watch, WatchReader, Watched};

/// Offsets and lengths of all reads and writes are multiples of this: design, section 4.2.
pub const ROW_SIZE: usize = 4096;

/// The bytes of one row.
pub type Row = [u8; ROW_SIZE];

/// One finished operation.
#[derive(Debug)]
pub struct Completion {
    /// The token given at submission.
    pub token: u64,
    /// What became of it. After an error the medium may hold any part of a write.
    pub result: Result<(), Error>,
    /// From submission to completion as the device saw it.
    pub latency_ns: u64,
    /// Of a read, also of one that failed: what was read.
    pub read: Option<Vec<u8>>,
}

impl Completion {
    /// The end of a write, a flush or a discard.
    pub fn new(token: u64, result: Result<(), Error>, latency_ns: u64) -> Self {
        Self { token, result, latency_ns, read: None }
    }

    /// The end of a read.
    pub fn of_read(
        token: u64,
        result: Result<(), Error>,
        (read, latency_ns): (Vec<u8>, u64),
    ) -> Self {
        Self { token, result, latency_ns, read: Some(read) }
    }
}

/// A member of a volume, opened for writing by exactly one process.
///
/// Submissions never block on the medium and never fail at once: every one of them gives exactly
/// one [`Completion`] with its token, which no other submission in flight may have; at most 1024
/// are in flight. Completions come in any order. The submitting thread outlives its submissions
/// (the kernel cancels what a thread leaves behind).
pub trait Device: Send + fmt::Debug {
    /// Usable size, a multiple of [`ROW_SIZE`].
    fn size_bytes(&self) -> u64;

    /// Starts writing `data[..len]` at `offset`.
    ///
    /// # Panics
    /// If `offset` or `len` is no multiple of [`ROW_SIZE`], `len` is 0 or beyond `data`, or the
    /// range leaves the device.
    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize);

    /// Starts a flush. Its success means that every write whose completion was reaped before this
    /// call is durable; it says nothing about writes in flight.
    fn submit_flush(&mut self, token: u64);

    /// Starts a discard: nothing needs the content of these `len` bytes any more, which is
    /// undefined, old or zero, until they are written again. No caller writes there before this has
    /// completed. It is advice: a device that takes none says so by an error, after which
    /// everything else goes on as before.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn submit_discard(&mut self, token: u64, offset: u64, len: u64);

    /// Starts reading `len` bytes at `offset`, which its completion carries. Sees every write that
    /// had completed before. A read that fails says nothing about writes.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn submit_read(&mut self, token: u64, offset: u64, len: usize);

    /// Appends finished operations to `out`. `None` does not block; with a wait it returns as soon
    /// as one has finished, nothing is in flight, or the time is over.
    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>);

    /// Submissions without a reaped completion.
    fn in_flight(&self) -> usize;

    /// Reads synchronously; any memory alignment of `into` will do. Sees every completed write.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error>;

    /// Writes synchronously: for superblocks and VOID heads. Not durable before a flush.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error>;

    /// Makes every completed write durable, synchronously.
    fn flush(&mut self) -> Result<(), Error>;

    /// What the user should know about how this device is driven, one line each.
    fn notes(&self) -> &[String];
}

/// One of several reads, see [`ReadAt::read_many`].
#[derive(Debug)]
pub struct Read<'a> {
    /// Byte offset at which it begins.
    pub offset: u64,
    /// What is read; undefined after an error.
    pub into: &'a mut [u8],
    /// What became of it.
    pub result: Result<(), Error>,
}

impl<'a> Read<'a> {
    /// A read to be done.
    pub fn new(offset: u64, into: &'a mut [u8]) -> Self {
        Self { offset, into, result: Err(Error::Interrupted) }
    }
}

/// A read whose memory is lent to the device until it has ended: [`ReadAt::begin`].
#[derive(Debug)]
pub struct LentRead {
    /// Byte offset at which it begins.
    pub offset: u64,
    /// What is read; undefined after an error, and empty where the device keeps it, because it
    /// does not answer.
    pub bytes: Vec<u8>,
    /// What became of it.
    pub result: Result<(), Error>,
}

impl LentRead {
    /// A read to be done, of as many bytes as there are.
    pub fn new(offset: u64, bytes: Vec<u8>) -> Self {
        Self { offset, bytes, result: Err(Error::Interrupted) }
    }

    /// Does all of them, and waits for each.
    fn read_all(mut reads: Vec<Self>, read_many: impl FnOnce(&mut [Read<'_>])) -> Vec<Self> {
        let borrowed = reads.iter_mut().map(|read| Read::new(read.offset, &mut read.bytes));
        let mut borrowed: Vec<Read<'_>> = borrowed.collect();
        read_many(&mut borrowed);
        let results: Vec<_> = borrowed.into_iter().map(|read| read.result).collect();
        for (read, result) in reads.iter_mut().zip(results) {
            read.result = result;
        }
        reads
    }

    /// Those at these places, whose memory the device keeps because it does not answer.
    fn keep_all(offsets: impl Iterator<Item = u64>, late: &Error) -> Vec<Self> {
        Self::refuse_all(offsets.map(|offset| Self::new(offset, Vec::new())).collect(), late)
    }

    /// None of them is done.
    fn refuse_all(mut reads: Vec<Self>, error: &Error) -> Vec<Self> {
        for read in &mut reads {
            read.result = Err(error.clone());
        }
        reads
    }
}

/// Reads that have begun.
pub trait Reading: fmt::Debug {
    /// Waits for all of them.
    fn end(self: Box<Self>) -> Vec<LentRead>;
}

/// Reads that have ended before a caller waited for them.
impl Reading for Vec<LentRead> {
    fn end(self: Box<Self>) -> Vec<LentRead> {
        *self
    }
}

/// A member opened for reading only: takes no lock, never writes.
pub trait ReadAt: Send + Sync + fmt::Debug {
    /// Usable size, a multiple of [`ROW_SIZE`].
    fn size_bytes(&self) -> u64;

    /// The clock that its reads take their time by: only differences mean anything.
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    /// Reads exactly `into`; any memory alignment will do.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error>;

    /// Fills a whole buffer, which is handed over and comes back, so that no byte is copied on the
    /// way. One that the device keeps, because it does not answer in time, is back in its pool when
    /// it has answered, and before it is asked anything else.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn read_buffer(&self, offset: u64, mut buffer: Buffer) -> (Option<Buffer>, Result<(), Error>) {
        let result = self.read_at(offset, &mut buffer);
        (Some(buffer), result)
    }

    /// Does all of `reads`, each as [`Self::read_at`] would; at the same time where that is faster.
    fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in reads {
            read.result = self.read_at(read.offset, read.into);
        }
    }

    /// Begins reads that are waited for later, each as [`Self::read_at`] would do it: a caller that
    /// reads several members begins on all of them, and then waits as long as the slowest needs. A
    /// device that cannot do so reads at once.
    ///
    /// # Panics
    /// As [`Device::submit_write`].
    fn begin<'a>(&'a self, reads: Vec<LentRead>) -> Box<dyn Reading + 'a> {
        Box::new(LentRead::read_all(reads, |reads| self.read_many(reads)))
    }
}

/// Holds every implementation to the contract of [`Device`].
#[track_caller]
fn assert_range(offset: u64, len: usize, size: u64) {
    let (row, len) = (to_u64(ROW_SIZE), to_u64(len));
    assert!(offset.is_multiple_of(row), "offset {offset} is a multiple of {row}");
    assert!(len > 0 && len.is_multiple_of(row), "length {len} is a positive multiple of {row}");
    assert!(
        offset.checked_add(len).is_some_and(|end| end <= size),
        "{len} bytes at {offset} lie within {size}"
    );
}

/// For values that were bounded by a length in memory before.
fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("the value was bounded by a length in memory")
}
