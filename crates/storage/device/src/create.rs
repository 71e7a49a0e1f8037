//! Making members that are files, written completely.

use core::ops::ControlFlow;
use core::time::Duration;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, openat};
use rustix::io::{Errno, retry_on_intr};

use crate::patience::{Callee, patiently};
use crate::target::{Access, Target};
use crate::{Error, Options, Pool, ROW_SIZE, open, to_u64, to_usize};

/// One write while a file is filled; eight are in flight.
const FILL_SIZE: usize = 2 << 20;
const FILL_DEPTH: usize = 8;

/// What a file member is to be.
#[derive(Debug, Clone, Copy)]
pub struct CreateOptions {
    /// A positive multiple of [`ROW_SIZE`].
    pub size_bytes: u64,
    /// Only set the size. Faster to make; the first lap over it writes a third slower.
    pub sparse: bool,
    /// Replace a file of this name.
    pub overwrite: bool,
}

/// Makes a file of zeros and makes it durable. Calls `progress` with the bytes done and to do; when
/// it breaks, or anything fails, the file is removed. Without `overwrite` an existing file is left
/// alone; with it the old file is gone at once.
///
/// Files are written completely because the first write into an unwritten extent costs a metadata
/// update.
///
/// # Panics
/// If the size is no positive multiple of [`ROW_SIZE`].
pub fn create_file(
    path: &Path,
    options: &CreateOptions,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let size = options.size_bytes;
    assert!(size > 0 && size.is_multiple_of(to_u64(ROW_SIZE)), "a member has whole rows");
    if options.overwrite {
        remove_file(path)?;
    }
    let (own, sparse) = (path.to_path_buf(), options.sparse);
    patiently(path, move || make(&own))??;
    let own = path.to_path_buf();
    let extended = move || extend(&own, size, sparse);
    let made = Callee::at(path)
        .call_long(extended)
        .and_then(|extended| extended)
        .and_then(|()| if sparse { Ok(()) } else { fill(path, size, progress) });
    let made = made.and_then(|()| {
        let own = path.to_path_buf();
        Callee::at(path).call_long(move || make_durable(&own))?
    });
    if made.is_err() {
        // The cause is worth more than a second error.
        let own = path.to_path_buf();
        drop(patiently(path, move || std::fs::remove_file(own)));
    }
    made
}

/// Makes the file, empty.
fn make(path: &Path) -> Result<(), Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = openat(CWD, path, flags, Mode::from_raw_mode(0o600)).map(drop);
    made.map_err(|errno| {
        let path = path.to_path_buf();
        match errno {
            Errno::EXIST => Error::Exists { path },
            Errno::NOENT | Errno::NOTDIR => Error::NotFound { path },
            Errno::ACCESS | Errno::PERM => Error::PermissionDenied { path },
            Errno::ROFS => Error::ReadOnly { path },
            errno => Error::path("create", &path, errno),
        }
    })
}

/// The file as it was made.
fn reopened(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|errno| Error::path("open", path, errno))
}

fn make_durable(path: &Path) -> Result<(), Error> {
    let fd = reopened(path)?;
    let synced = retry_on_intr(|| rustix::fs::fsync(&fd));
    synced.map_err(|errno| Error::path("flush", path, errno))?;
    sync_directory(path)
}

/// Removes a file if it is there, but not under a process that is writing to it.
///
/// # Errors
/// When it is written to, or cannot be removed; [`Error::Silent`] where it does not answer.
pub fn remove_file(path: &Path) -> Result<(), Error> {
    let own = path.to_path_buf();
    Callee::at(path).call_long(move || match Target::open(&own, Access::Exclusive, false) {
        Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_locked) => std::fs::remove_file(&own).map_err(|error| Error::Path {
            operation: "remove",
            path: own.clone(),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }),
    })?
}

/// Gives the file its size; reserving the space at once keeps it in few extents.
fn extend(path: &Path, size_bytes: u64, sparse: bool) -> Result<(), Error> {
    let fd = reopened(path)?;
    if !sparse {
        match rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, size_bytes) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(Error::path("reserve space for", path, errno)),
        }
    }
    rustix::fs::ftruncate(&fd, size_bytes).map_err(|errno| Error::path("extend", path, errno))
}

/// Writes zeros from end to end.
fn fill(
    path: &Path,
    size: u64,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let pool = Pool::new(1, FILL_SIZE)?;
    let zeros = pool.take().expect("the pool has one buffer").freeze();
    let mut device = open(path, &Options::default())?;
    let (mut submitted, mut done, mut completions) = (0, 0, Vec::new());
    while done < size {
        while device.in_flight() < FILL_DEPTH && submitted < size {
            let len = (size - submitted).min(to_u64(FILL_SIZE));
            device.submit_write(len, submitted, zeros.clone(), to_usize(len));
            submitted += len;
        }
        device.reap(Some(Duration::from_secs(1)), &mut completions);
        for completion in completions.drain(..) {
            completion.result?;
            done += completion.token;
        }
        if progress(done, size).is_break() {
            return Err(Error::Interrupted);
        }
    }
    device.flush()
}

/// The name of a new file is durable only with its directory.
fn sync_directory(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    openat(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .and_then(rustix::fs::fsync)
        .map_err(|errno| Error::path("flush the directory of", path, errno))
}
