//! The memory that the kernel writes records of one processor into (`perf_event_open(2)`, "MMAP
//! layout"): a page with both ends, and a ring of a power of two pages.
//!
//! Invariant: bytes between tail and head belong to this program until it moves the tail; they are
//! copied out first, so that nothing else ever looks at memory that the kernel writes.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `data_head` and `data_tail` of `struct perf_event_mmap_page`, which is aligned so that they stay
/// where they are.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;

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
        // SAFETY: asks for a number, and touches nothing.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        assert!(size.is_power_of_two() && size >= page, "a ring of a power of two pages");
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

    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both ends lie in the first page, at multiples of eight.
        let place = unsafe { self.memory.as_ptr().add(offset) };
        // SAFETY: kernel and program change both ends by whole words only, and the mapping lives
        // as long as this borrow.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// Copies out what the kernel has written since the last time, and gives its room back.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        into.clear();
        let tail = self.end(TAIL_OFFSET).load(Ordering::Relaxed);
        let head = self.end(HEAD_OFFSET).load(Ordering::Acquire);
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
        // SAFETY: the ring begins one page behind the mapping's start, and has `size` bytes.
        let from = unsafe { self.memory.as_ptr().add(self.page + begin) };
        // SAFETY: in bounds, and the kernel does not write between tail and head.
        into.extend_from_slice(unsafe { core::slice::from_raw_parts(from, len) });
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.page + self.size) };
    }
}
