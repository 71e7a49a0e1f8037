//! How much of a file is in memory already.

#![expect(unsafe_code, reason = "cachestat(2) has no wrapper")]

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::Error;

/// `cachestat(2)`, Linux 6.5: one number on all architectures.
const CACHESTAT: libc::c_long = 451;

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
/// where the kernel cannot tell: before Linux 6.5.
pub fn cached_share(path: &Path) -> Result<Option<f64>, Error> {
    let fail = |errno: Errno| Error::path("ask for the cached pages of", path, errno);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(CWD, path, flags, Mode::empty());
    let file = file.map_err(|errno| Error::path("open", path, errno))?;
    let size = u64::try_from(fstat(&file).map_err(fail)?.st_size).unwrap_or(0);
    let pages = size.div_ceil(u64::try_from(rustix::param::page_size()).unwrap_or(4096));
    let (range, mut found) = (Range { offset: 0, length: 0 }, Pages::default());
    // SAFETY: the kernel reads one `struct cachestat_range` and writes one `struct cachestat`,
    // which these are; the descriptor is open.
    let answer = unsafe {
        libc::syscall(
            CACHESTAT,
            std::os::fd::AsRawFd::as_raw_fd(&file),
            &raw const range,
            &raw mut found,
            0_u32,
        )
    };
    if answer != 0 {
        return match std::io::Error::last_os_error().raw_os_error() {
            // Of huge pages there is no telling, and sandboxes refuse what they do not know.
            Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM) | None => Ok(None),
            Some(number) => Err(fail(Errno::from_raw_os_error(number))),
        };
    }
    Ok(Some(if pages == 0 { 1.0 } else { (real(found.cached) / real(pages)).min(1.0) }))
}

/// For a share; beyond 2^53 it is rounded.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a door opens files")]
    fn make_sparse(path: &Path, size_bytes: u64) {
        std::fs::File::create(path).unwrap().set_len(size_bytes).unwrap();
    }

    #[test]
    fn what_was_just_written_is_cached_and_what_has_no_pages_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let Some(share) = cached_share(&path).unwrap() else {
            println!("not run: cachestat(2) needs Linux 6.5");
            return;
        };
        assert!((share - 1.0).abs() < 1e-9, "{share}");
        // A hole that nobody read has no pages.
        let sparse = folder.path().join("sparse");
        make_sparse(&sparse, 0);
        assert_eq!(cached_share(&sparse).unwrap(), Some(1.0), "nothing of it is missing");
        make_sparse(&sparse, 1 << 20);
        assert_eq!(cached_share(&sparse).unwrap(), Some(0.0));
        assert!(cached_share(&folder.path().join("absent")).is_err());
    }
}
