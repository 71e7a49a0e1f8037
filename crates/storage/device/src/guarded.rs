//! An opened target of which every call has a deadline.
//!
//! A call that is overdue goes on by itself, so it has memory of its own: what is read is copied to
//! the caller's once it is there. A caller that reads much hands its own over
//! ([`ReadAt::read_buffer`]).

use core::time::Duration;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::bounce::Bounce;
use crate::patience::{Call, Callee, give_back};
use crate::target::{Access, Target};
use crate::{Buffer, Error, LentRead, Read, ReadAt, Reading, assert_range};

/// One call reads or writes at most so much; longer transfers are several.
const PART_SIZE: usize = 1 << 20;
/// One call has at most so many reads.
const READS_MAX: usize = 128;
/// How long who closes a target waits until that is done: the lock is given up by then, unless the
/// file system hangs.
const CLOSE: Duration = Duration::from_millis(500);
/// Buffers that are kept for further calls.
const KEPT_MAX: usize = 4;

/// A target whose calls end even when the disk does not answer.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// There until this is dropped.
    target: Option<Arc<Target>>,
    callee: Arc<Callee>,
    size_bytes: u64,
    is_direct: bool,
    is_served: bool,
    buffers: Mutex<Vec<Bounce>>,
}

impl Guarded {
    /// As [`Target::open`].
    ///
    /// # Errors
    /// Those, and [`Error::Silent`].
    pub(crate) fn open(path: &Path, access: Access, direct: bool) -> Result<Self, Error> {
        let callee = Callee::at(path);
        let own = path.to_path_buf();
        let target = callee.call(move || Target::open(&own, access, direct))??;
        let (is_direct, is_served) = (target.is_direct(), target.is_served());
        let size_bytes = target.size_bytes();
        let (target, buffers) = (Some(Arc::new(target)), Mutex::default());
        Ok(Self { target, callee, size_bytes, is_direct, is_served, buffers })
    }

    /// The target itself, for those that wait for it in another way.
    pub(crate) fn target(&self) -> &Arc<Target> {
        self.target.as_ref().expect("it is there until this is dropped")
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    pub(crate) fn is_served(&self) -> bool {
        self.is_served
    }

    /// Calls the target with a buffer, which comes back unless the call is overdue.
    fn call<T: Send + 'static>(
        &self,
        mut buffer: Bounce,
        work: impl FnOnce(&Target, &mut Bounce) -> T + Send + 'static,
    ) -> Result<(T, Bounce), Error> {
        let target = Arc::clone(self.target());
        self.callee.call(move || {
            let value = work(&target, &mut buffer);
            (value, buffer)
        })
    }

    fn take_buffer(&self) -> Bounce {
        self.buffers().pop().unwrap_or_default()
    }

    fn put_back(&self, buffer: Bounce) {
        let mut buffers = self.buffers();
        if buffers.len() < KEPT_MAX {
            buffers.push(buffer);
        }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Bounce>> {
        stage::lock(&self.buffers)
    }

    /// Writes exactly `data`.
    pub(crate) fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        assert_range(offset, data.len(), self.size_bytes);
        for (part, at) in data.chunks(PART_SIZE).zip((offset..).step_by(PART_SIZE)) {
            let len = part.len();
            let mut buffer = self.take_buffer();
            buffer.aligned(len).copy_from_slice(part);
            let written =
                self.call(buffer, move |target, buffer| target.write_at(at, buffer.aligned(len)));
            let (result, buffer) = written?;
            self.put_back(buffer);
            result?;
        }
        Ok(())
    }

    /// Makes every completed write durable. Where writes went into the page cache all of that is
    /// written now, which takes its time.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let target = Arc::clone(self.target());
        let sync = move || target.sync();
        if self.is_direct { self.callee.call(sync)? } else { self.callee.call_long(sync)? }
    }

    /// Reads a few at once; they have at most [`PART_SIZE`] bytes together, or are one.
    fn read_some(&self, reads: &mut [Read<'_>]) -> Result<(), Error> {
        let places: Vec<(u64, usize)> =
            reads.iter().map(|read| (read.offset, read.into.len())).collect();
        let total = places.iter().map(|(_, len)| len).sum();
        let (results, mut buffer) = self.call(self.take_buffer(), move |target, buffer| {
            let mut rest = buffer.aligned(total);
            let mut own = Vec::with_capacity(places.len());
            for (offset, len) in places {
                let (into, behind) = rest.split_at_mut(len);
                own.push(Read::new(offset, into));
                rest = behind;
            }
            target.read_many(&mut own);
            own.into_iter().map(|read| read.result).collect::<Vec<_>>()
        })?;
        let mut bytes = &*buffer.aligned(total);
        for (read, result) in reads.iter_mut().zip(results) {
            let (found, behind) = bytes.split_at(read.into.len());
            read.into.copy_from_slice(found);
            read.result = result;
            bytes = behind;
        }
        self.put_back(buffer);
        Ok(())
    }
}

/// Reads under way, some in each call, and those that were refused.
#[derive(Debug)]
struct Under {
    calls: Vec<(Vec<u64>, Call<Vec<LentRead>>)>,
}

impl Reading for Under {
    fn end(self: Box<Self>) -> Vec<LentRead> {
        let end = |(offsets, call): (Vec<u64>, Call<Vec<LentRead>>)| {
            call.end().unwrap_or_else(|late| LentRead::keep_all(offsets.into_iter(), &late))
        };
        self.calls.into_iter().flat_map(end).collect()
    }
}

/// How many of the first reads are done by one call.
fn fitting(reads: &[Read<'_>]) -> usize {
    let mut room = PART_SIZE;
    let fits = |read: &&Read<'_>| {
        let left = room.checked_sub(read.into.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    reads.iter().take(READS_MAX).take_while(fits).count()
}

impl ReadAt for Guarded {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        assert_range(offset, into.len(), self.size_bytes);
        for (part, at) in into.chunks_mut(PART_SIZE).zip((offset..).step_by(PART_SIZE)) {
            let mut read = [Read::new(at, part)];
            self.read_some(&mut read)?;
            let [read] = read;
            read.result?;
        }
        Ok(())
    }

    fn read_buffer(&self, offset: u64, mut buffer: Buffer) -> (Option<Buffer>, Result<(), Error>) {
        assert_range(offset, buffer.len(), self.size_bytes);
        let target = Arc::clone(self.target());
        let read = self.callee.call(move || {
            let result = target.read_at(offset, &mut buffer);
            (buffer, result)
        });
        read.map_or_else(|late| (None, Err(late)), |(buffer, result)| (Some(buffer), result))
    }

    /// Their memory is lent to the call, so nothing is copied.
    fn begin<'a>(&'a self, reads: Vec<LentRead>) -> Box<dyn Reading + 'a> {
        for read in &reads {
            assert_range(read.offset, read.bytes.len(), self.size_bytes);
        }
        if let Err(error) = self.callee.check() {
            return Box::new(LentRead::refuse_all(reads, &error));
        }
        let (mut calls, mut rest) = (Vec::new(), reads);
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(READS_MAX));
            let offsets = rest.iter().map(|read| read.offset).collect();
            let target = Arc::clone(self.target());
            let own = core::mem::replace(&mut rest, later);
            let read = move || LentRead::read_all(own, |reads| target.read_many(reads));
            calls.push((offsets, self.callee.begin_beside(read)));
        }
        Box::new(Under { calls })
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in &*reads {
            assert_range(read.offset, read.into.len(), self.size_bytes);
        }
        let mut rest = reads;
        while !rest.is_empty() {
            let count = fitting(rest);
            let (now, later) = rest.split_at_mut(count.max(1));
            rest = later;
            if let (0, [long]) = (count, &mut *now) {
                long.result = self.read_at(long.offset, long.into);
            } else if let Err(error) = self.read_some(now) {
                for read in now {
                    read.result = Err(error.clone());
                }
            }
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let target = self.target.take();
        // The other holder closes it then.
        give_back(CLOSE, move || drop(target));
    }
}
