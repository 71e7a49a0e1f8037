//! The files in memory that pools lie in: how they are sealed, and which are this process's.

use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{SealFlags, fstat};
use rustix::io::Errno;

/// What a pool's file has for good. Its length stays, so a page that was mapped is never taken away
/// (no SIGBUS); no process maps it to write, or writes, that did not have it mapped before.
pub(super) const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE).union(SealFlags::SEAL);

/// A file, for as long as it is open anywhere: device and inode number.
pub(super) type FileId = (u64, u64);

/// Files of the pools of this process. They must not be mapped here a second time.
static OWN_FILES: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// Before the file is sealed, so that [`super::SharedPool::map`] never takes it for another
/// process's.
pub(super) fn register(id: FileId) {
    own_files().push(id);
}

/// The mapping has ended.
pub(super) fn forget(id: FileId) {
    own_files().retain(|own| *own != id);
}

/// A panic while it was locked cannot leave it half changed.
pub(super) fn own_files() -> MutexGuard<'static, Vec<FileId>> {
    OWN_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which file it is, and how long.
pub(super) fn file_id(fd: impl AsFd) -> Result<(FileId, u64), Errno> {
    let found = fstat(fd)?;
    Ok(((found.st_dev, found.st_ino), u64::try_from(found.st_size).unwrap_or(0)))
}
