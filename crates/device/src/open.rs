//! Opening a member with the best means that the machine allows.

#![expect(clippy::disallowed_methods, reason = "a door may sleep; a lock has no event to wait for")]

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use crate::clock::monotonic_ns;
use crate::target::{Access, Target};
use crate::threads::Threads;
use crate::uring::Uring;
use crate::{Device, Error, Latched, ROW_SIZE, Read, ReadAt, to_u64};

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
    Ok(Box::new(Latched::new(drive(Arc::new(target), options)?)))
}

/// The writes in flight of a killed process hold its locks until they have ended, as they must:
/// nothing old lands after the member was opened anew. They are waited for.
fn claim(path: &Path, direct: bool) -> Result<Target, Error> {
    let start_ns = monotonic_ns();
    loop {
        match Target::open(path, Access::Exclusive, direct) {
            Err(Error::InUse { .. }) if monotonic_ns() - start_ns < CLAIM_WAIT_NS => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// The ring, or threads where there is none.
fn drive(target: Arc<Target>, options: &Options) -> Result<Box<dyn Device>, Error> {
    let mut notes = Vec::new();
    if !target.is_direct() && !options.without_direct {
        notes.push("no direct I/O on this file system: buffered, synced".to_owned());
    }
    if options.without_uring {
        return Ok(Box::new(Threads::start(target, notes)?));
    }
    match Uring::start(Arc::clone(&target), notes.clone()) {
        Ok(uring) => Ok(Box::new(uring)),
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
    Ok(Box::new(Target::open(path, Access::Read, true)?))
}

/// Whether a process has a member open for writing. The question holds a shared lock for a moment,
/// which [`open`] waits out.
pub fn is_open_for_writing(path: &Path) -> bool {
    matches!(Target::open(path, Access::Shared, false), Err(Error::InUse { .. }))
}

impl ReadAt for Target {
    fn size_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.read_at(offset, into)
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        self.read_many(reads);
    }
}
