//! How much space a file system has, and in how many pieces a file lies on it.

#![expect(unsafe_code, reason = "FS_IOC_FIEMAP is an ioctl without a safe wrapper")]

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat, statvfs};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};

use crate::Error;

/// `struct fiemap` of linux/fiemap.h, without space for extents.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `FIEMAP_FLAG_SYNC`: what is not allocated yet is written first.
const SYNC: u32 = 1;

/// Bytes that this user may still write where `path` lies.
pub fn free_bytes(path: &Path) -> Result<u64, Error> {
    let found = statvfs(path).map_err(|errno| Error::path("examine", path, errno))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// In how many extents a file lies; `None` where the file system does not say.
pub fn extents(path: &Path) -> Result<Option<u64>, Error> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty());
    let file = file.map_err(|errno| Error::path("open", path, errno))?;
    let mut map = Fiemap { length: u64::MAX, flags: SYNC, ..Fiemap::default() };
    // SAFETY: FS_IOC_FIEMAP reads and writes a `struct fiemap`, which `Fiemap` is.
    let count = unsafe { Updater::<{ opcode::read_write::<Fiemap>(b'f', 11) }, _>::new(&mut map) };
    // SAFETY: behind it the kernel writes as many extents as `extent_count` allows: none.
    let counted = unsafe { ioctl(&file, count) };
    match counted {
        Ok(()) => Ok(Some(u64::from(map.mapped_extents))),
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => Ok(None),
        Err(errno) => Err(Error::path("ask for the extents of", path, errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]
    fn a_file_with_a_hole_has_an_extent_on_either_side() {
        use std::os::unix::fs::FileExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 65_536]).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path);
        file.unwrap().write_all_at(&vec![2; 65_536], 64 << 20).unwrap();
        match extents(&path).unwrap() {
            Some(count) => assert!((2..=4).contains(&count), "{count}"),
            None => println!("not run: the file system of temporary files has no FIEMAP"),
        }
        assert!(free_bytes(&path).unwrap() > 0);
        assert!(extents(&folder.path().join("absent")).is_err());
    }
}
