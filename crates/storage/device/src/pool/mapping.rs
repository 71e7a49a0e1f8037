//! Memory whose pages come when they are touched: anonymous, or that of a file in memory which
//! other processes may map to read.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock_with, mmap, mmap_anonymous, munmap,
};

use super::files::{self, FileId};
use crate::to_u64;

/// Below one huge page the advice would be meaningless.
pub(super) const HUGE_PAGE_SIZE: usize = 2 << 20;
const PAGE_SIZE: usize = 4096;
const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// A range that no other code in this process has mapped, unmapped when dropped. Who may touch
/// which part of it is the owner's to say.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    is_huge: bool,
    /// What the range shows, where that is a file.
    file: Option<File>,
}

/// A sealed file in memory: only through the mapping that made it is it ever written.
struct File {
    fd: OwnedFd,
    id: FileId,
}

// SAFETY: the range has no affinity to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives access to no byte of it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least so many bytes: in huge pages that were set aside for that, if there
    /// are enough of them (`hugetlbpage.rst` in the kernel's documentation), else in what the
    /// kernel finds.
    pub(super) fn new(len: usize) -> Result<Self, Errno> {
        if let Some(huge) = Self::huge(len) {
            return Ok(huge);
        }
        let start = map(len, MapFlags::PRIVATE)?;
        let mapping = Self { start, len, is_huge: false, file: None };
        mapping.settle()?;
        Ok(mapping)
    }

    /// As [`Self::new`], in a file that other processes may map to read, and not otherwise. Fails
    /// where the kernel has no such files, or none with these seals (before Linux 5.1).
    pub(super) fn in_file(len: usize) -> Result<Self, Errno> {
        if let Some(huge) = Self::huge_in_file(len) {
            return Ok(huge);
        }
        let mapping = Self::of_file(len, MemfdFlags::empty())?;
        mapping.settle()?;
        Ok(mapping)
    }

    /// The memory of a new file, mapped for writing and then sealed.
    fn of_file(len: usize, pages: MemfdFlags) -> Result<Self, Errno> {
        let fd = file(pages)?;
        ftruncate(&fd, to_u64(len))?;
        let id = files::file_id(&fd)?.0;
        let is_huge = pages.contains(MemfdFlags::HUGETLB);
        files::register(id);
        let start = map_file(&fd, len, READ_WRITE).inspect_err(|_| files::forget(id))?;
        let mapping = Self { start, len, is_huge, file: Some(File { fd, id }) };
        // It keeps its length, so that no page of a mapping is ever taken away, and the mapping
        // above stays the only one that can be written through: F_ADD_SEALS, fcntl(2).
        let file = mapping.memory_fd().expect("it is that of a file");
        fcntl_add_seals(file, files::SEALS & !SealFlags::SEAL)?;
        fcntl_add_seals(file, SealFlags::SEAL)?;
        // A forked process would have that mapping too.
        mapping.advise((0, len), Advice::LinuxDontFork)?;
        Ok(mapping)
    }

    /// For a range in pages that the kernel finds.
    fn settle(&self) -> Result<(), Errno> {
        if self.len >= HUGE_PAGE_SIZE {
            self.advise((0, self.len), Advice::LinuxHugepage)?;
            self.lock();
        }
        Ok(())
    }

    /// What other processes may map.
    pub(super) fn memory_fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(|file| file.fd.as_fd())
    }

    /// What was touched stays in memory, however little of it there is. A process that may not lock
    /// so much does without.
    fn lock(&self) {
        // SAFETY: the range is ours; locking changes nothing in it.
        let locked = unsafe { mlock_with(self.address(0), self.len, MlockFlags::ONFAULT) };
        locked.unwrap_or_default();
    }

    fn huge(len: usize) -> Option<Self> {
        let len = whole_huge_pages(len)?;
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        let start = map(len, flags).ok()?;
        Self { start, len, is_huge: true, file: None }.populated()
    }

    fn huge_in_file(len: usize) -> Option<Self> {
        let pages = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        Self::of_file(whole_huge_pages(len)?, pages).ok()?.populated()
    }

    fn populated(self) -> Option<Self> {
        // They are reserved, but a control group may still refuse them: then on first touch, with a
        // signal.
        self.advise((0, self.len), Advice::LinuxPopulateWrite).is_ok().then_some(self)
    }

    /// Whether it lies in huge pages that were set aside; then all of it has been touched.
    pub(super) fn is_huge(&self) -> bool {
        self.is_huge
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives the pages of a range of whole pages memory, so that no thread waits for it later. What
    /// they hold does not change, even while other threads write to them.
    pub(super) fn touch(&self, offset: usize, len: usize) -> Result<(), Errno> {
        if self.file.is_some() {
            let first = offset - offset % HUGE_PAGE_SIZE;
            (first..offset + len).step_by(HUGE_PAGE_SIZE).for_each(|at| self.collapse(at));
        }
        self.advise((offset, len), Advice::LinuxPopulateWrite)
    }

    /// One large page instead of many small ones, where the kernel can: it gives them to a file by
    /// itself only if `shmem_enabled` in `/sys/kernel/mm/transparent_hugepage` says so, which it
    /// seldom does, and on request always, unless that says `deny`. From Linux 6.1.
    fn collapse(&self, offset: usize) {
        if offset + HUGE_PAGE_SIZE > self.len {
            return;
        }
        // A range without any page is not collapsed.
        if self.advise((offset, PAGE_SIZE), Advice::LinuxPopulateWrite).is_ok() {
            // SAFETY: the range is ours, and what it holds does not change.
            unsafe { libc::madvise(self.address(offset), HUGE_PAGE_SIZE, libc::MADV_COLLAPSE) };
        }
    }

    fn address(&self, offset: usize) -> *mut c_void {
        self.start.as_ptr().wrapping_add(offset).cast::<c_void>()
    }

    /// A kernel that does not know an advice (EINVAL) only costs speed.
    fn advise(&self, (offset, len): (usize, usize), advice: Advice) -> Result<(), Errno> {
        assert!(offset + len <= self.len, "the range lies in the mapping");
        // SAFETY: the range is ours, and none of the advices in use changes its content.
        match unsafe { madvise(self.address(offset), len, advice) } {
            Err(errno) if errno != Errno::INVAL => Err(errno),
            _ => Ok(()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the owner has made sure that nothing points into it.
        let unmapped = unsafe { munmap(self.address(0), self.len) };
        assert!(unmapped.is_ok(), "a mapping is unmapped once, as it was mapped");
        if let Some(file) = &self.file {
            files::forget(file.id);
        }
    }
}

/// A small pool would take a whole one away from those that need many.
fn whole_huge_pages(len: usize) -> Option<usize> {
    len.checked_next_multiple_of(HUGE_PAGE_SIZE).filter(|_| len >= HUGE_PAGE_SIZE)
}

/// A file in memory that no process has opened yet. It holds no program: kernels that know it
/// (Linux 6.3) get a flag for that, and may be configured to refuse files that do not say
/// (`vm.memfd_noexec`).
fn file(pages: MemfdFlags) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | pages;
    let strict = memfd_create(c"wirespool", flags | MemfdFlags::NOEXEC_SEAL);
    strict.or_else(|errno| match errno {
        Errno::INVAL => memfd_create(c"wirespool", flags),
        _ => Err(errno),
    })
}

/// Maps a file from its beginning where large pages of it may lie: the kernel does not care for
/// that by itself where `shmem_enabled` says `never`. In a mapping that lies elsewhere, each of
/// their small pages has a place of its own, for the processor to remember and to come by a fault.
pub(super) fn map_file(
    fd: impl AsFd,
    len: usize,
    protection: ProtFlags,
) -> Result<NonNull<u8>, Errno> {
    let room = len.checked_add(HUGE_PAGE_SIZE).ok_or(Errno::NOMEM)?;
    // A place that is free now and given back at once, as a hint. Mapping over a reservation
    // (MAP_FIXED) is not safe: where it fails, as without huge pages, parts of the reservation may
    // be unmapped (mmap, POSIX). Another thread gets them, and loses them when the rest is freed.
    // SAFETY: without a hint and without FIXED the kernel chooses an unused range.
    let free = unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        mmap_anonymous(core::ptr::null_mut(), room, ProtFlags::empty(), flags)
    }?;
    // SAFETY: it was mapped above, and no other code knows of it.
    let unmapped = unsafe { munmap(free, room) };
    assert!(unmapped.is_ok(), "what was mapped can be given back");
    let hint = free.wrapping_byte_add(free.align_offset(HUGE_PAGE_SIZE));
    // SAFETY: without FIXED the kernel chooses an unused range, this one if it still is.
    let start = unsafe { mmap(hint, len, protection, MapFlags::SHARED, fd, 0) }?;
    Ok(NonNull::new(start.cast::<u8>()).expect("mmap never returns null"))
}

fn map(len: usize, flags: MapFlags) -> Result<NonNull<u8>, Errno> {
    // SAFETY: without a hint and without FIXED the kernel chooses an unused range.
    let start = unsafe { mmap_anonymous(core::ptr::null_mut(), len, READ_WRITE, flags) }?;
    Ok(NonNull::new(start.cast::<u8>()).expect("mmap never returns null"))
}
