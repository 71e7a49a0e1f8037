//! Opening a member with the best means that the machine allows.

#![expect(clippy::disallowed_methods, reason = "it may sleep; a lock has no event to wait for")]

use core::time::Duration;
use std::path::Path;

use crate::clock::monotonic_ns;
use crate::guarded::Guarded;
use crate::rings::make_ring;
use crate::target::Access;
use crate::threads::Threads;
use crate::uring::Uring;
use crate::{Device, Error, Latched, ROW_SIZE, ReadAt, rings, to_u64};

/// How long a member may stay in use before it is refused.
const CLAIM_WAIT_NS: u64 = 1_000_000_000;

/// How a member is opened. The two `without` switches force the fallbacks, for tests and for
/// users who have to work around a system.
#[derive(Debug, Clone)]
pub struct Options {
    /// A smaller target is refused.
    pub minimum_bytes: u64,
    /// Go through the page cache.
    pub without_direct: bool,
    /// Write with threads.
    pub without_uring: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { minimum_bytes: to_u64(ROW_SIZE), without_direct: false, without_uring: false }
    }
}

/// Opens a regular file or block device for this process alone, waiting a second for another to let
/// go of it. Latched: after a failed write or sync every later mutation is refused.
pub fn open(path: &Path, options: &Options) -> Result<Box<dyn Device>, Error> {
    let target = claim(path, !options.without_direct)?;
    let minimum_bytes = options.minimum_bytes.max(to_u64(ROW_SIZE));
    if target.size_bytes() < minimum_bytes {
        let (path, size_bytes) = (path.to_path_buf(), target.size_bytes());
        return Err(Error::TooSmall { path, size_bytes, minimum_bytes });
    }
    Ok(Box::new(Latched::new(drive(target, options)?)))
}

/// The writes in flight of a killed process hold its locks until they have ended, as they must:
/// nothing old lands after the member was opened anew. They are waited for.
fn claim(path: &Path, direct: bool) -> Result<Guarded, Error> {
    let start_ns = monotonic_ns();
    loop {
        match Guarded::open(path, Access::Exclusive, direct) {
            Err(Error::InUse { .. } | Error::BackingInUse { .. })
                if monotonic_ns() - start_ns < CLAIM_WAIT_NS =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// The ring, or threads where there is none.
fn drive(target: Guarded, options: &Options) -> Result<Box<dyn Device>, Error> {
    let mut notes = Vec::new();
    if !target.is_direct() && !options.without_direct {
        notes.push("no direct I/O on this file system: buffered, synced".to_owned());
    }
    // Some such file systems carry a write out while it is submitted, whatever `io_uring` asks of
    // them (fuse_direct_io): one that hangs would hold up the thread that writes to all members.
    if options.without_uring || target.is_served() {
        return Ok(Box::new(Threads::start(target, notes)?));
    }
    match make_ring().or_else(|error| rings::take().ok_or(error)) {
        Ok(ring) => Ok(Box::new(Uring::start(ring, target, notes))),
        Err(error) => {
            let count = crate::threads::THREAD_COUNT;
            notes.push(format!(
                "io_uring is switched off here ({error}); writing with {count} threads instead"
            ));
            Ok(Box::new(Threads::start(target, notes)?))
        }
    }
}

/// Opens a member for reading only: without a lock, beside a writer if there is one.
pub fn open_read(path: &Path) -> Result<Box<dyn ReadAt>, Error> {
    Ok(Box::new(Guarded::open(path, Access::Read, true)?))
}

/// Whether a process has a member open for writing. The question holds a shared lock for a moment,
/// which [`open`] waits out.
pub fn is_open_for_writing(path: &Path) -> bool {
    let opened = Guarded::open(path, Access::Shared, false);
    matches!(opened, Err(Error::InUse { .. } | Error::BackingInUse { .. }))
}
