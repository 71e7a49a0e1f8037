//! Anonymous memory whose pages come when they are touched.

use core::ffi::c_void;
use core::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MlockFlags, ProtFlags, madvise, mlock_with, mmap_anonymous, munmap,
};

/// Below one huge page the advice would be meaningless.
pub(super) const HUGE_PAGE_SIZE: usize = 2 << 20;

/// A private range, unmapped when dropped. Who may touch which part of it is the owner's to say.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    is_huge: bool,
}

// SAFETY: the range has no affinity to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives access to no byte of it.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least so many bytes: in huge pages that somebody has set aside for that, if there
    /// are enough of them (`hugetlbpage.rst` in the kernel's documentation), else in what the
    /// kernel finds.
    pub(super) fn new(len: usize) -> Result<Self, Errno> {
        if let Some(huge) = Self::huge(len) {
            return Ok(huge);
        }
        let mapping = Self { start: map(len, MapFlags::PRIVATE)?, len, is_huge: false };
        if len >= HUGE_PAGE_SIZE {
            mapping.advise((0, len), Advice::LinuxHugepage)?;
            mapping.lock();
        }
        Ok(mapping)
    }

    /// What was touched stays in memory, however little of it there is. Whoever may not lock so
    /// much does without.
    fn lock(&self) {
        // SAFETY: the range is ours; locking changes nothing in it.
        let locked = unsafe { mlock_with(self.address(0), self.len, MlockFlags::ONFAULT) };
        locked.unwrap_or_default();
    }

    fn huge(len: usize) -> Option<Self> {
        // A small pool would take a whole one away from those that need many.
        let len = len.checked_next_multiple_of(HUGE_PAGE_SIZE).filter(|_| len >= HUGE_PAGE_SIZE)?;
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        let mapping = Self { start: map(len, flags).ok()?, len, is_huge: true };
        // They are reserved, but a control group may still refuse them: then on first touch, with a
        // signal.
        mapping.advise((0, len), Advice::LinuxPopulateWrite).is_ok().then_some(mapping)
    }

    /// Whether it lies in huge pages that were set aside; then all of it has been touched.
    pub(super) fn is_huge(&self) -> bool {
        self.is_huge
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives the pages of a range of whole pages memory, so that nobody waits for it later. What
    /// they hold does not change, whoever writes to them meanwhile.
    pub(super) fn touch(&self, offset: usize, len: usize) -> Result<(), Errno> {
        self.advise((offset, len), Advice::LinuxPopulateWrite)
    }

    fn address(&self, offset: usize) -> *mut c_void {
        self.start.as_ptr().wrapping_add(offset).cast::<c_void>()
    }

    /// A kernel that does not know an advice (EINVAL) only costs speed.
    fn advise(&self, (offset, len): (usize, usize), advice: Advice) -> Result<(), Errno> {
        assert!(offset + len <= self.len, "the range lies in the mapping");
        // SAFETY: the range is ours, and neither advice in use changes its content.
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
    }
}

fn map(len: usize, flags: MapFlags) -> Result<NonNull<u8>, Errno> {
    let read_write = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: without a hint and without FIXED the kernel chooses an unused range.
    let start = unsafe { mmap_anonymous(core::ptr::null_mut(), len, read_write, flags) }?;
    Ok(NonNull::new(start.cast::<u8>()).expect("mmap never returns null"))
}
