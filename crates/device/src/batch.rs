//! Many small reads at a time: a device answers them in hardly more time than one.
//!
//! The kernel writes into memory of this module until a completion says that it is done, whatever
//! becomes of the caller; if the ring itself fails, that can never be known, and the memory is
//! leaked. Where there is no ring, threads read.

#![expect(
    unsafe_code,
    reason = "the kernel is given addresses, which only this module keeps alive"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};
use std::thread;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use crate::target::{Bounce, Target};
use crate::{Error, Read, to_usize};

/// Reads in flight at a time.
const ENTRIES: u32 = 128;
/// Bytes in flight at a time; a longer read goes alone, the ordinary way.
const ARENA_SIZE: usize = 1 << 20;
/// Threads where there is no ring.
const THREADS: usize = 8;

/// A ring for reads, and the memory that they go into.
pub(crate) struct Batch(Mutex<Parts>);

struct Parts {
    /// Declared first: it is gone before the memory is.
    ring: IoUring,
    arena: Bounce,
    /// The ring failed with reads in flight: nobody knows when they end.
    broken: bool,
}

impl core::fmt::Debug for Batch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Batch")
    }
}

impl Batch {
    /// Fails where `io_uring` is missing or forbidden.
    pub(crate) fn start() -> io::Result<Self> {
        let ring = IoUring::new(ENTRIES)?;
        Ok(Self(Mutex::new(Parts { ring, arena: Bounce::default(), broken: false })))
    }

    /// Reads all of them.
    pub(crate) fn read(&self, target: &Target, reads: &mut [Read<'_>]) {
        // Whoever panicked inside left nothing in flight: the waiting is free of panics.
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = reads;
        while !rest.is_empty() {
            let count = fitting(rest);
            let (now, later) = rest.split_at_mut(count.max(1));
            rest = later;
            if count == 0 || parts.broken {
                read_each(target, now);
            } else {
                parts.read(target, now);
            }
        }
    }
}

/// How many of the first reads go into the arena together.
fn fitting(reads: &[Read<'_>]) -> usize {
    let mut room = ARENA_SIZE;
    let fits = |read: &&Read<'_>| {
        let left = room.checked_sub(read.into.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    reads.iter().take(to_usize(ENTRIES.into())).take_while(fits).count()
}

impl Parts {
    fn read(&mut self, target: &Target, reads: &mut [Read<'_>]) {
        let total = reads.iter().map(|read| read.into.len()).sum();
        let mut rest = self.arena.aligned(total);
        let file = Fd(target.as_fd().as_raw_fd());
        for (read, number) in reads.iter().zip(0..) {
            let (place, behind) = rest.split_at_mut(read.into.len());
            rest = behind;
            let len = u32::try_from(place.len()).expect("it fits the arena");
            let entry = opcode::Read::new(file, place.as_mut_ptr(), len).offset(read.offset);
            let entry = entry.build().user_data(number);
            // SAFETY: the arena stays where it is until every completion has arrived, or is leaked;
            // the places do not overlap, and each has `len` bytes.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("at most as many as the ring has entries");
        }
        let results = match self.wait(reads.len()) {
            Ok(results) => results,
            Err(errno) => {
                self.broken = true;
                core::mem::forget(core::mem::take(&mut self.arena));
                for read in reads {
                    read.result = Err(Error::io("read", read.offset, errno));
                }
                return;
            }
        };
        let mut arena = &*self.arena.aligned(total);
        for (read, result) in reads.iter_mut().zip(results) {
            let (bytes, behind) = arena.split_at(read.into.len());
            arena = behind;
            if usize::try_from(result) == Ok(bytes.len()) {
                read.into.copy_from_slice(bytes);
                read.result = Ok(());
            } else {
                // Cut short, interrupted or refused: the ordinary way has the reason.
                read.result = target.read_at(read.offset, read.into);
            }
        }
    }

    /// What the kernel says of each read.
    fn wait(&mut self, count: usize) -> Result<Vec<i32>, Errno> {
        let mut results = vec![0; count];
        let mut arrived = 0;
        while arrived < count {
            match self.ring.submit_and_wait(count - arrived) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
            for completion in self.ring.completion() {
                let place = results.get_mut(to_usize(completion.user_data()));
                *place.expect("a number of ours") = completion.result();
                arrived += 1;
            }
        }
        Ok(results)
    }
}

fn read_each(target: &Target, reads: &mut [Read<'_>]) {
    for read in reads {
        read.result = target.read_at(read.offset, read.into);
    }
}

/// The same without a ring.
pub(crate) fn read_in_threads(target: &Target, reads: &mut [Read<'_>]) {
    let threads = THREADS.min(reads.len());
    let queue = Mutex::new(reads.iter_mut());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(read) = next() {
            read.result = target.read_at(read.offset, read.into);
        }
    };
    thread::scope(|scope| {
        let helper = |_| thread::Builder::new().name("read".into()).spawn_scoped(scope, work);
        // Where there can be no more threads, this one reads it all.
        let helpers: Vec<_> = (1..threads).map_while(|at| helper(at).ok()).collect();
        work();
        drop(helpers);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Access;
    use crate::{ROW_SIZE, to_u64};
    use std::os::unix::fs::FileExt as _;

    /// A file in which every row has its number in every byte, and a target for it.
    fn file(rows: u8) -> (tempfile::NamedTempFile, Target) {
        let file = tempfile::NamedTempFile::new().unwrap();
        for row in 0..rows {
            let offset = u64::from(row) * to_u64(ROW_SIZE);
            file.as_file().write_all_at(&[row; ROW_SIZE], offset).unwrap();
        }
        let target = Target::open(file.path(), Access::Read, true).unwrap();
        (file, target)
    }

    fn check(target: &Target, read_many: &dyn Fn(&mut [Read<'_>])) {
        // More than fit the ring, of one row and of several.
        let places = (0..200_u8).map(|row| (row, usize::from(row % 5) + 1));
        let places: Vec<(u8, usize)> = places.collect();
        let mut buffers: Vec<Vec<u8>> =
            places.iter().map(|(_, rows)| vec![0xff; rows * ROW_SIZE]).collect();
        let mut long = vec![0xff; 150 * ROW_SIZE];
        let mut reads: Vec<Read<'_>> = places
            .iter()
            .zip(&mut buffers)
            .map(|((row, _), into)| Read::new(u64::from(*row) * to_u64(ROW_SIZE), into))
            .collect();
        reads.insert(100, Read::new(0, &mut long));
        read_many(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        for ((row, rows), bytes) in places.into_iter().zip(&buffers) {
            let expected: Vec<u8> = (row..).take(rows).flat_map(|row| [row; ROW_SIZE]).collect();
            assert!(*bytes == expected, "row {row}");
        }
        assert!(long.ends_with(&[149; ROW_SIZE]));
        assert_eq!(target.size_bytes(), 250 * to_u64(ROW_SIZE));
    }

    #[test]
    fn many_reads_give_what_each_alone_would() {
        let (_file, target) = file(250);
        check(&target, &|reads| target.read_many(reads));
        check(&target, &|reads| read_in_threads(&target, reads));
    }

    #[test]
    fn a_read_that_fails_spoils_no_other() {
        let (file, target) = file(20);
        file.as_file().set_len(to_u64(10 * ROW_SIZE)).unwrap();
        let mut buffers = vec![[0xff; ROW_SIZE]; 20];
        let mut reads: Vec<Read<'_>> = (0..)
            .zip(&mut buffers)
            .map(|(row, into)| Read::new(row * to_u64(ROW_SIZE), into))
            .collect();
        target.read_many(&mut reads);
        let good: Vec<bool> = reads.iter().map(|read| read.result.is_ok()).collect();
        assert_eq!(good, [[true; 10], [false; 10]].concat());
        assert_eq!(buffers[9], [9; ROW_SIZE]);
    }
}
