//! The memory of a pool where Miri runs it: Miri knows neither advice nor seals, so it comes from
//! the heap. What is checked by that is the cutting and sharing, which is the same.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::mm::ProtFlags;

use crate::ROW_SIZE;

pub(super) const HUGE_PAGE_SIZE: usize = 2 << 20;

/// As that of the system: zeros, aligned to a page.
pub(super) struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the range has no affinity to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives access to no byte of it.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(len: usize) -> Result<Self, Errno> {
        // What a system has at most.
        let layout = Layout::from_size_align(len, ROW_SIZE).ok();
        let layout = layout.filter(|layout| (1..1 << 32).contains(&layout.size()));
        let layout = layout.ok_or(Errno::NOMEM)?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Errno::NOMEM)?;
        Ok(Self { start, layout })
    }

    pub(super) fn in_file(_len: usize) -> Result<Self, Errno> {
        Err(Errno::NOSYS)
    }

    pub(super) fn memory_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(super) fn is_huge(&self) -> bool {
        false
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn touch(&self, offset: usize, len: usize) -> Result<(), Errno> {
        assert!(offset + len <= self.layout.size(), "the range lies in the mapping");
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the owner has made sure that nothing points into
        // it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Files in memory cannot be mapped there.
pub(super) fn map_file(
    _fd: impl AsFd,
    _len: usize,
    _protection: ProtFlags,
) -> Result<NonNull<u8>, Errno> {
    Err(Errno::NOSYS)
}
