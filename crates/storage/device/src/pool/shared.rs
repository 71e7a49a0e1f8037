//! What another process sees of a pool.
//!
//! The pool's process has the only mapping that can be written; the seals of the file see to that.
//! A reader maps all of it to read, and learns from messages which buffer it may look at.

use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;
use std::os::fd::AsFd;

use rustix::fs::fcntl_get_seals;
use rustix::io::Errno;
use rustix::mm::{ProtFlags, munmap};

use super::files::{SEALS, file_id, own_files};
use super::mapping::{HUGE_PAGE_SIZE, map_file};

/// Why memory is not mapped as that of another process's pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum SharedPoolError {
    #[error("it is not sealed as a pool's memory is")]
    NotSealed,
    #[error("it has {size_bytes} bytes, and {count} buffers of {buffer_bytes} were announced")]
    Size { size_bytes: u64, count: u32, buffer_bytes: usize },
    #[error("it belongs to a pool of this very process")]
    OwnPool,
    #[error("cannot {operation}: {}", std::io::Error::from_raw_os_error(*errno))]
    System { operation: &'static str, errno: i32 },
}

impl SharedPoolError {
    fn system(operation: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { operation, errno: errno.raw_os_error() }
    }
}

/// The buffers of a [`Pool`](super::Pool) of another process, to be read.
///
/// # What the other process may do meanwhile
///
/// It alone can write to this memory, and it does so only through a [`Buffer`](super::Buffer),
/// which it does not have while it holds a [`Shared`](super::Shared) of the same buffer. So the
/// bytes of a piece do not change if
///
/// 1. it announces a buffer only while it holds a `Shared` of it, and
/// 2. keeps that until the reader has said that it is done, or has been waited for (`wait4`).
///
/// No reference that [`SharedPool::piece`] gave may be in use after the reader has said so. The
/// message that announces a buffer, which the kernel carries, orders its bytes before the reading.
///
/// A process that breaks 1 or 2 makes the reader read bytes that change under its eyes. Nothing can
/// be mapped, unmapped or cut short by that: what a reader computes from them is wrong, and the
/// compiler, which reads a byte twice where it likes, may take a check for done that the second
/// reading would fail. That is the one thing that no check here can exclude. Readers therefore are
/// processes without rights, whose answers are not trusted.
pub struct SharedPool {
    start: NonNull<u8>,
    len: usize,
    count: u32,
    size: usize,
}

// SAFETY: the range has no affinity to a thread, and this process only reads it.
unsafe impl Send for SharedPool {}
// SAFETY: as above: `&SharedPool` gives access for reading alone.
unsafe impl Sync for SharedPool {}

impl SharedPool {
    /// Maps the memory of a pool of `count` buffers of `size` bytes. The descriptor is not needed
    /// afterwards.
    ///
    /// # Errors
    /// If the file lacks a seal, is shorter than the buffers or longer than the huge pages that
    /// they fill, belongs to a [`Pool`](super::Pool) of this process, or cannot be mapped.
    pub fn map(fd: impl AsFd, count: u32, size: usize) -> Result<Self, SharedPoolError> {
        let system = SharedPoolError::system;
        let seals = fcntl_get_seals(&fd).map_err(|_| SharedPoolError::NotSealed)?;
        if !seals.contains(SEALS) {
            return Err(SharedPoolError::NotSealed);
        }
        // The length that it has now it has for good.
        let (id, size_bytes) = file_id(&fd).map_err(system("examine it"))?;
        let len = Self::fitting(size_bytes, count, size).ok_or(SharedPoolError::Size {
            size_bytes,
            count,
            buffer_bytes: size,
        })?;
        // A pool of this process has a `Buffer` somewhere that may write at any moment. Sealed
        // files are not written by other code here: F_SEAL_FUTURE_WRITE is in force since before
        // this process could have mapped it.
        if own_files().contains(&id) {
            return Err(SharedPoolError::OwnPool);
        }
        let start = map_file(&fd, len, ProtFlags::READ).map_err(system("map it"))?;
        Ok(Self { start, len, count, size })
    }

    /// The length of a file that holds so many buffers, and not a huge page more.
    fn fitting(size_bytes: u64, count: u32, size: usize) -> Option<usize> {
        let len = usize::try_from(size_bytes).ok()?;
        let announced = usize_of(count).checked_mul(size).filter(|bytes| *bytes > 0)?;
        let beyond = len.checked_sub(announced)?;
        (beyond < HUGE_PAGE_SIZE && isize::try_from(len).is_ok()).then_some(len)
    }

    /// The first `len` bytes of buffer `index`; `None` if there is no such buffer or it is shorter.
    /// Whose they are meanwhile is said [above](SharedPool).
    pub fn piece(&self, index: u32, len: usize) -> Option<&[u8]> {
        if index >= self.count || len > self.size {
            return None;
        }
        let offset = usize_of(index).checked_mul(self.size)?;
        // SAFETY: `index < count` and `len <= size`, so the range ends within `count * size`
        // bytes, which `map` has found to be no more than were mapped.
        let start = unsafe { self.start.add(offset) };
        // SAFETY: mapped to read until `self` is dropped, which the slice does not outlive;
        // initialised (the kernel gives zeros); never cut short (F_SEAL_SHRINK). This process has
        // no mapping of it that could be written: `map` made sure. Of the other process the
        // protocol says that it does not write, see the type.
        Some(unsafe { core::slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// Buffers in all.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes in each buffer.
    pub fn buffer_size(&self) -> usize {
        self.size
    }
}

impl Drop for SharedPool {
    fn drop(&mut self) {
        // SAFETY: mapped once in `map`, with this length; every slice of it has ended.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) };
        assert!(unmapped.is_ok(), "a mapping is unmapped once, as it was mapped");
    }
}

impl fmt::Debug for SharedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPool")
            .field("count", &self.count)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The number of a buffer as a place.
pub(super) fn usize_of(index: u32) -> usize {
    usize::try_from(index).expect("usize has at least 32 bits")
}

#[cfg(test)]
#[cfg(not(miri))]
#[path = "shared/tests.rs"]
mod tests;
