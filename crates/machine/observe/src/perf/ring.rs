//! The memory that the kernel writes records of one processor into (`perf_event_open(2)`, "MMAP
//! layout"): a page with both ends, and a ring of a power of two pages.
//!
//! Invariant: bytes between tail and head belong to this program until it moves the tail. All of
//! the memory is accessed by atomic words only, and copied out before it is looked at: whatever the
//! kernel writes meanwhile, nothing is undefined.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use host::native::u64_bytes;

/// `data_head` and `data_tail` of `struct perf_event_mmap_page`, which is aligned so that they stay
/// where they are.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;
const WORD: usize = size_of::<u64>();

#[derive(Debug)]
pub(crate) struct Ring {
    memory: NonNull<u8>,
    page: usize,
    /// Bytes of the ring, a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event, `size` bytes: a power of two, and whole pages.
    pub(crate) fn map(event: BorrowedFd<'_>, size: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        assert!(size.is_power_of_two() && size >= page, "a ring of a power of two pages");
        assert!(size <= isize::MAX.unsigned_abs() / 2, "a ring fits into memory");
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, page, size })
    }

    /// The words of the whole mapping.
    fn words(&self) -> &[AtomicU64] {
        let count = (self.page + self.size) / WORD;
        // SAFETY: so many bytes are mapped at a multiple of a page, and stay so as long as this
        // borrow; any bits are a value; this program accesses them as atomic words only.
        unsafe { core::slice::from_raw_parts(self.memory.as_ptr().cast(), count) }
    }

    fn end(&self, offset: usize) -> &AtomicU64 {
        self.words().get(offset / WORD).expect("both ends lie in the first page")
    }

    /// Copies out what the kernel has written since the last time, and gives its space back.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        into.clear();
        // Records are whole words.
        let whole = |at: u64| at - at % 8;
        let tail = whole(self.end(TAIL_OFFSET).load(Ordering::Relaxed));
        let head = whole(self.end(HEAD_OFFSET).load(Ordering::Acquire));
        let filled = usize::try_from(head.wrapping_sub(tail)).unwrap_or(self.size).min(self.size);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX) & (self.size - 1);
        let begin = place(tail);
        let first = filled.min(self.size - begin);
        self.copy(begin, first, into);
        self.copy(0, filled - first, into);
        self.end(TAIL_OFFSET).store(head, Ordering::Release);
    }

    fn copy(&self, begin: usize, len: usize, into: &mut Vec<u8>) {
        assert!(begin + len <= self.size, "a copy stays within the ring");
        let begin = (self.page + begin) / WORD;
        let words = self.words().get(begin..begin + len / WORD).expect("inside of the ring");
        into.reserve(len);
        for word in words {
            into.extend_from_slice(&u64_bytes(word.load(Ordering::Relaxed)));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// What is taken of a ring of one page with these ends; each word has its number.
    #[track_caller]
    fn check(tail: u64, head: u64, expect: &[u64]) {
        let page = rustix::param::page_size();
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, 2 * u64::try_from(page).unwrap()).unwrap();
        let ring = Ring::map(memory.as_fd(), page).unwrap();
        for (word, number) in ring.words().iter().skip(page / WORD).zip(0..) {
            word.store(number, Ordering::Relaxed);
        }
        ring.end(TAIL_OFFSET).store(tail, Ordering::Relaxed);
        ring.end(HEAD_OFFSET).store(head, Ordering::Relaxed);
        let mut bytes = Vec::new();
        ring.take(&mut bytes);
        let words = bytes.as_chunks().0.iter().map(|word| host::native::u64_of(*word));
        assert_eq!(words.collect::<Vec<_>>(), expect, "{tail} to {head}");
        ring.take(&mut bytes);
        assert!(bytes.is_empty(), "its space was given back");
    }

    #[test]
    fn what_lies_between_the_ends_is_taken_also_around_the_corner() {
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        let words = page / 8;
        check(0, 0, &[]);
        check(8, 32, &[1, 2, 3]);
        check(page - 8, page + 16, &[words - 1, 0, 1]);
        check(7 * page, 8 * page, &(0..words).collect::<Vec<_>>());
    }

    #[test]
    fn ends_that_cannot_be_stay_within_the_ring() {
        let page = u64::try_from(rustix::param::page_size()).unwrap();
        let all: Vec<u64> = (0..page / 8).collect();
        check(0, u64::MAX, &all);
        check(16, 0, &[&all[2..], &all[..2]].concat());
        // In the middle of a word.
        check(3, 13, &[0]);
    }
}
