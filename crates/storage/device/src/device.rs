//! A member as a volume sees it: what every device does, real, modelled or wrapped.

use core::fmt;
use core::time::Duration;

use crate::clock;
use crate::error::Error;
use crate::pool::{Buffer, Shared};

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
    /// Usable size, a multiple of [`crate::ROW_SIZE`].
    fn size_bytes(&self) -> u64;

    /// Starts writing `data[..len]` at `offset`.
    ///
    /// # Panics
    /// If `offset` or `len` is no multiple of [`crate::ROW_SIZE`], `len` is 0 or beyond `data`, or
    /// the range leaves the device.
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
    pub(crate) fn read_all(
        mut reads: Vec<Self>,
        read_many: impl FnOnce(&mut [Read<'_>]),
    ) -> Vec<Self> {
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
    pub(crate) fn keep_all(offsets: impl Iterator<Item = u64>, late: &Error) -> Vec<Self> {
        Self::refuse_all(offsets.map(|offset| Self::new(offset, Vec::new())).collect(), late)
    }

    /// None of them is done.
    pub(crate) fn refuse_all(mut reads: Vec<Self>, error: &Error) -> Vec<Self> {
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
    /// Usable size, a multiple of [`crate::ROW_SIZE`].
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
