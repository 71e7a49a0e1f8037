//! How much of a file is in memory already.

#![expect(unsafe_code, reason = "cachestat(2) has no wrapper; mincore(2) needs a mapping")]

use core::ptr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, fstat, fstatfs, openat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use units::number::real;

use crate::Error;

/// `cachestat(2)`, Linux 6.5: one number on all architectures.
const CACHESTAT: libc::c_long = 451;
/// `OVERLAYFS_SUPER_MAGIC` of linux/magic.h: the root of most containers.
const OVERLAYFS: i64 = 0x794c_7630;
/// Bytes that are mapped at a time: a multiple of every page size.
const WINDOW_BYTES: u64 = 1 << 30;

/// `struct cachestat_range` of linux/mman.h; a length of 0 is to the end.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of linux/mman.h.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The share of a file's pages that are in the page cache, from 0 to 1; 1 of an empty file. `None`
/// where the kernel does not say: before Linux 6.5 of files that this user may not write.
pub fn cached_share(path: &Path) -> Result<Option<f64>, Error> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(CWD, path, flags, Mode::empty());
    let file = file.map_err(|errno| Error::path("open", path, errno))?;
    let found = fstat(&file).map_err(|errno| Error::path("examine", path, errno))?;
    let size = u64::try_from(found.st_size).unwrap_or(0);
    let pages = size.div_ceil(page_bytes());
    // The kernel calls all pages of other people's files resident.
    let is_told = || accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let cached = match statistics(&file) {
        Some(cached) => Some(cached),
        None if is_told() => resident(&file, size),
        None => None,
    };
    let share = |cached| if pages == 0 { 1.0 } else { (real(cached) / real(pages)).min(1.0) };
    Ok(cached.map(share))
}

/// Pages as `cachestat(2)` counts them. `None` where there is none, where a sandbox refuses what it
/// does not know, of huge pages, and on overlayfs: the pages are those of the file below, and 0 is
/// what it counts of this one.
fn statistics(file: &OwnedFd) -> Option<u64> {
    if fstatfs(file).ok()?.f_type == OVERLAYFS {
        return None;
    }
    let (range, mut found) = (Range { offset: 0, length: 0 }, Pages::default());
    // SAFETY: the kernel reads one `struct cachestat_range` and writes one `struct cachestat`,
    // which these are; the descriptor is open.
    let answer = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut found, 0_u32)
    };
    (answer == 0).then_some(found.cached)
}

/// Pages as `mincore(2)` counts them.
fn resident(file: &OwnedFd, size: u64) -> Option<u64> {
    let windows = (0..size).step_by(usize::try_from(WINDOW_BYTES).ok()?);
    windows.map(|offset| window(file, offset, WINDOW_BYTES.min(size - offset))).sum()
}

fn window(file: &OwnedFd, offset: u64, bytes: u64) -> Option<u64> {
    let len = usize::try_from(bytes).ok()?;
    let mut pages = vec![0_u8; usize::try_from(bytes.div_ceil(page_bytes())).ok()?];
    // SAFETY: a new mapping, at a place that the kernel chooses, which no code reads.
    let mapped =
        unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, offset) };
    let mapped = mapped.ok()?;
    // SAFETY: the mapping is there, and the vector has a byte for each of its pages.
    let answer = unsafe { libc::mincore(mapped, len, pages.as_mut_ptr()) };
    // SAFETY: it was mapped above with this length, and nothing points into it.
    let unmapped: Result<(), Errno> = unsafe { munmap(mapped, len) };
    unmapped.ok()?;
    let cached = pages.iter().filter(|page| **page & 1 == 1).count();
    (answer == 0).then(|| u64::try_from(cached).unwrap_or(u64::MAX))
}

/// What the kernel counts memory in.
pub fn page_bytes() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]
    fn file(path: &Path, bytes: &[u8], size_bytes: u64) -> OwnedFd {
        std::fs::write(path, bytes).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        file.set_len(size_bytes).unwrap();
        file.into()
    }

    /// Both ways say the same, where there are both.
    #[track_caller]
    fn check(path: &Path, file: &OwnedFd, size_bytes: u64, pages: u64, share: f64) {
        assert_eq!(resident(file, size_bytes), Some(pages), "mincore");
        assert!(statistics(file).is_none_or(|cached| cached == pages), "cachestat");
        let found = cached_share(path).unwrap().unwrap();
        assert!((found - share).abs() < 1e-9, "{found}");
    }

    #[test]
    fn what_was_just_written_is_cached_and_what_has_no_pages_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let page = usize::try_from(page_bytes()).unwrap();
        let written = file(&path, &vec![1; 8 * page], 8 * page_bytes());
        check(&path, &written, 8 * page_bytes(), 8, 1.0);
        // A hole that was never read has no pages.
        let half = file(&path, &vec![1; 8 * page], 16 * page_bytes());
        check(&path, &half, 16 * page_bytes(), 8, 0.5);
        let hole = file(&path, b"", 16 * page_bytes());
        check(&path, &hole, 16 * page_bytes(), 0, 0.0);
        let empty = file(&path, b"", 0);
        check(&path, &empty, 0, 0, 1.0);
        assert!(cached_share(&folder.path().join("absent")).is_err());
    }
}
