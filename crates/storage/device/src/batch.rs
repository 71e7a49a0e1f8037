//! Many small reads at a time: a device answers them in hardly more time than one.
//!
//! The kernel writes into memory of this module until a completion says that it is done, whatever
//! becomes of the caller. So that memory is taken out of its place while reads are in flight, and
//! put back only when every one has arrived: after anything else, a ring that fails or a panic,
//! it is not known when they end, and it is leaked. Where there is no ring, threads read.

#![expect(
    unsafe_code,
    reason = "the kernel is given addresses, which only this module keeps alive"
)]

use core::mem::ManuallyDrop;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Mutex;
use std::thread;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use crate::bounce::Bounce;
use crate::rings::restricted;
use crate::{Error, Read, to_usize};

/// Reads in flight at a time.
const ENTRIES: u32 = 128;
/// Bytes in flight at a time; a longer read goes alone, the ordinary way.
const ARENA_SIZE: usize = 1 << 20;
/// Threads where there is no ring.
const THREADS: usize = 8;

/// Does one read, and says in it what became of it.
type Alone<'a> = &'a (dyn Fn(&mut Read<'_>) + Sync);

/// A ring for reads, and the memory that they go into.
pub(crate) struct Batch(Mutex<Parts>);

struct Parts {
    ring: IoUring,
    /// Nothing is in flight. `None` where that is not known: then the ring is not used again.
    arena: Option<Bounce>,
}

impl core::fmt::Debug for Batch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Batch")
    }
}

impl Batch {
    /// Fails where `io_uring` is missing or forbidden.
    pub(crate) fn start() -> io::Result<Self> {
        let ring = restricted(&mut IoUring::builder(), ENTRIES, &[opcode::Read::CODE])?;
        Ok(Self(Mutex::new(Parts { ring, arena: Some(Bounce::default()) })))
    }

    /// Reads all of them from a file; `alone` does one of them the ordinary way.
    pub(crate) fn read(&self, file: impl AsFd, reads: &mut [Read<'_>], alone: Alone<'_>) {
        // Who panicked inside has left no memory.
        let mut parts = stage::lock(&self.0);
        let mut rest = reads;
        while !rest.is_empty() {
            let count = fitting(rest);
            let (now, later) = rest.split_at_mut(count.max(1));
            rest = later;
            let arena = if count == 0 { None } else { parts.arena.take() };
            match arena {
                None => now.iter_mut().for_each(alone),
                Some(arena) => parts.read((file.as_fd(), alone), now, arena),
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
    /// Puts the memory back if nothing can be in flight any more.
    fn read(
        &mut self,
        (file, alone): (BorrowedFd<'_>, Alone<'_>),
        reads: &mut [Read<'_>],
        arena: Bounce,
    ) {
        let mut arena = ManuallyDrop::new(arena);
        let total = reads.iter().map(|read| read.into.len()).sum();
        let results = self.push(file, reads, arena.aligned(total)).and_then(|()| {
            // Not before: an entry that waits has an address, too.
            self.wait(reads.len())
        });
        let results = match results {
            Ok(results) => results,
            Err(errno) => {
                for read in reads {
                    read.result = Err(Error::io("read", read.offset, errno));
                }
                return;
            }
        };
        let mut arena = ManuallyDrop::into_inner(arena);
        let mut bytes = &*arena.aligned(total);
        for (read, result) in reads.iter_mut().zip(results) {
            let (found, behind) = bytes.split_at(read.into.len());
            bytes = behind;
            if usize::try_from(result) == Ok(found.len()) {
                read.into.copy_from_slice(found);
                read.result = Ok(());
            } else {
                // Cut short, interrupted or refused: the ordinary way has the reason.
                alone(read);
            }
        }
        self.arena = Some(arena);
    }

    /// Queues reads, one after the other into `rest`, with their places as numbers.
    fn push(
        &mut self,
        file: BorrowedFd<'_>,
        reads: &[Read<'_>],
        mut rest: &mut [u8],
    ) -> Result<(), Errno> {
        let file = Fd(file.as_raw_fd());
        for (read, number) in reads.iter().zip(0..) {
            let (place, behind) = rest.split_at_mut_checked(read.into.len()).ok_or(Errno::INVAL)?;
            rest = behind;
            let len = u32::try_from(place.len()).map_err(|_| Errno::INVAL)?;
            let entry = opcode::Read::new(file, place.as_mut_ptr(), len).offset(read.offset);
            let entry = entry.build().user_data(number);
            // SAFETY: the places do not overlap, and each has `len` bytes. They are those of an
            // arena that `read`, the only caller, neither frees nor touches unless `wait` has found
            // that every read has arrived; whatever else happens it is leaked. The descriptor is
            // open until then, or the kernel holds the file.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.map_err(|_| Errno::NOMEM)?;
        }
        Ok(())
    }

    /// What the kernel says of each read, once all have arrived.
    fn wait(&mut self, count: usize) -> Result<Vec<i32>, Errno> {
        let mut results: Vec<Option<i32>> = vec![None; count];
        let mut left = count;
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
            for completion in self.ring.completion() {
                let number = usize::try_from(completion.user_data()).map_err(|_| Errno::IO)?;
                // Each number once: what is said twice says nothing of the one that is missing.
                let place = results.get_mut(number).filter(|place| place.is_none());
                *place.ok_or(Errno::IO)? = Some(completion.result());
                left -= 1;
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// The same without a ring.
pub(crate) fn read_in_threads(reads: &mut [Read<'_>], alone: Alone<'_>) {
    let threads = THREADS.min(reads.len());
    let queue = Mutex::new(reads.iter_mut());
    let next = || stage::lock(&queue).next();
    let work = || {
        while let Some(read) = next() {
            alone(read);
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
    use crate::target::{Access, Target};
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

    fn alone(target: &Target) -> impl Fn(&mut Read<'_>) + Sync {
        |read| read.result = target.read_at(read.offset, read.into)
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
        check(&target, &|reads| read_in_threads(reads, &alone(&target)));
    }

    #[test]
    fn a_ring_that_failed_is_not_used_again_and_the_reads_are_done_all_the_same() {
        let (_file, target) = file(250);
        let batch = match Batch::start() {
            Ok(batch) => batch,
            Err(error) => return println!("not run: no io_uring here: {error}"),
        };
        let mut parts = batch.0.into_inner().unwrap();
        let mut buffers = vec![[0xff; ROW_SIZE]; 129];
        let mut reads: Vec<Read<'_>> = buffers.iter_mut().map(|into| Read::new(0, into)).collect();
        // More than it has space for: some are queued, and would be sent with the next.
        let arena = parts.arena.take().unwrap();
        parts.read((target.as_fd(), &alone(&target)), &mut reads, arena);
        assert!(reads.iter().all(|read| read.result.is_err()));
        assert!(parts.arena.is_none());
        let batch = Batch(Mutex::new(parts));
        check(&target, &|reads| batch.read(&target, reads, &alone(&target)));
        assert!(batch.0.into_inner().unwrap().arena.is_none());
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
