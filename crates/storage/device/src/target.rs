//! An opened file or block device, and its synchronous reads and writes.
//!
//! Direct where the file system allows it. Direct I/O wants aligned memory; callers' memory that is
//! not goes through a bounce buffer of this thread.

use core::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::fs::{CWD, fstat, fstatfs, ioctl_blksszget, major, minor, openat, seek, stat, statx};
use rustix::io::{Errno, retry_on_intr};

use crate::batch::{Batch, read_in_threads};
use crate::bounce::Bounce;
use crate::range_lock::lock_range;
use crate::storage::{Root, Storage};
use crate::{Error, ROW_SIZE, Read, assert_range, to_u64};

/// A bounce buffer holds this much; longer transfers go in parts.
const BOUNCE_SIZE: usize = 1 << 20;

/// FUSE, NFS, SMB of versions 1 and 2, 9P, Ceph and AFS: linux/magic.h.
const SERVED: [i128; 7] =
    [0x6573_5546, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x5346_414f];

/// What a target is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading, without any lock.
    Read,
    /// Reading, while no process writes.
    Shared,
    /// Reading and writing by this process alone.
    Exclusive,
}

/// An open file or block device.
#[derive(Debug)]
pub(crate) struct Target {
    fd: OwnedFd,
    size_bytes: u64,
    direct: bool,
    is_served: bool,
    /// A file that had a name when it was opened, and whose number of names can be asked for
    /// without waiting for whoever serves its file system.
    is_named: bool,
    /// `None` where there is no ring.
    batch: OnceLock<Option<Batch>>,
    /// The file that holds its bytes in the end, where that is another one: locked.
    _backing: Option<OwnedFd>,
}

impl Target {
    /// Opens `path`, without the page cache if `direct` is wished and possible.
    pub(crate) fn open(path: &Path, access: Access, direct: bool) -> Result<Self, Error> {
        let kind = file_type(path)?;
        if direct {
            match Self::open_as(path, kind, access, true) {
                Ok(target) if target.reads_directly() => return Ok(target),
                Ok(_) | Err(Error::Path { errno: libc::EINVAL, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Self::open_as(path, kind, access, false)
    }

    fn open_as(path: &Path, kind: FileType, access: Access, direct: bool) -> Result<Self, Error> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if access == Access::Exclusive { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::DIRECT, direct);
        // On a block device O_EXCL claims it against mounts, swap, md, dm and other claims:
        // open(2).
        flags.set(OFlags::EXCL, access == Access::Exclusive && kind == FileType::BlockDevice);
        let opened = retry_on_intr(|| openat(CWD, path, flags, Mode::empty()));
        let fd = opened.map_err(|errno| refused(path, errno))?;
        let opened = fstat(&fd).map_err(|errno| Error::path("examine", path, errno))?;
        if FileType::from_raw_mode(opened.st_mode) != kind {
            return Err(Error::NotAFileOrBlockDevice { path: path.to_path_buf() });
        }
        match access {
            Access::Read => {}
            Access::Shared => lock(&fd, path, FlockOperation::NonBlockingLockShared)?,
            Access::Exclusive => lock(&fd, path, FlockOperation::NonBlockingLockExclusive)?,
        }
        let backing = if access == Access::Read { None } else { lock_bytes(&fd, path, access)? };
        if kind == FileType::BlockDevice {
            check_logical_block(&fd, path)?;
            // The kernel lets a writer open a read-only block device and refuses the writes:
            // block/fops.c.
            if access == Access::Exclusive && is_read_only_device(path) {
                return Err(Error::ReadOnly { path: path.to_path_buf() });
            }
        }
        let end =
            seek(&fd, SeekFrom::End(0)).map_err(|errno| Error::path("measure", path, errno))?;
        if access == Access::Exclusive && !direct {
            forget_cached(&fd, path)?;
        }
        let (size_bytes, is_served) = (end - end % to_u64(ROW_SIZE), is_served(&fd));
        let is_named = kind == FileType::RegularFile && !is_served && opened.st_nlink > 0;
        let batch = OnceLock::new();
        Ok(Self { fd, size_bytes, direct, is_served, is_named, batch, _backing: backing })
    }

    /// Some file systems accept `O_DIRECT` and refuse the transfers, or want more than 4096-byte
    /// alignment.
    fn reads_directly(&self) -> bool {
        let aligned =
            statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).map_or(true, |answer| {
                let known =
                    StatxFlags::from_bits_retain(answer.stx_mask).contains(StatxFlags::DIOALIGN);
                !known || (1..=4096).contains(&answer.stx_dio_offset_align)
            });
        let mut probe = Bounce::default();
        let row = probe.aligned(ROW_SIZE);
        aligned && (self.size_bytes == 0 || rustix::io::pread(&self.fd, row, 0).is_ok())
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Another process or machine answers for the file, or does not.
    pub(crate) fn is_served(&self) -> bool {
        self.is_served
    }

    /// Reads exactly `into`.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        assert_range(offset, into.len(), self.size_bytes);
        if !self.direct || is_aligned(into) {
            return self.read_whole(offset, into);
        }
        with_bounce(|bounce| {
            let mut at = offset;
            for part in into.chunks_mut(BOUNCE_SIZE) {
                let aligned = bounce.aligned(part.len());
                self.read_whole(at, aligned)?;
                part.copy_from_slice(aligned);
                at += to_u64(part.len());
            }
            Ok(())
        })
    }

    /// Reads all of them, many at a time.
    pub(crate) fn read_many(&self, reads: &mut [Read<'_>]) {
        for read in &*reads {
            assert_range(read.offset, read.into.len(), self.size_bytes);
        }
        if let [read] = reads {
            read.result = self.read_at(read.offset, read.into);
            return;
        }
        let alone = |read: &mut Read<'_>| read.result = self.read_at(read.offset, read.into);
        match self.batch.get_or_init(|| Batch::start().ok()) {
            Some(batch) => batch.read(&self.fd, reads, &alone),
            None => read_in_threads(reads, &alone),
        }
    }

    /// Writes exactly `data`.
    pub(crate) fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        assert_range(offset, data.len(), self.size_bytes);
        if !self.direct || is_aligned(data) {
            return self.write_whole(offset, data);
        }
        with_bounce(|bounce| {
            let mut at = offset;
            for part in data.chunks(BOUNCE_SIZE) {
                let aligned = bounce.aligned(part.len());
                aligned.copy_from_slice(part);
                self.write_whole(at, aligned)?;
                at += to_u64(part.len());
            }
            Ok(())
        })
    }

    /// Makes every completed write durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let synced = retry_on_intr(|| rustix::fs::fdatasync(&self.fd));
        synced.map_err(|errno| Error::io("flush", 0, errno))?;
        self.check_name()
    }

    /// Nothing is durable in a file without a name: it goes when the last process closes it
    /// (unlink(2)).
    pub(crate) fn check_name(&self) -> Result<(), Error> {
        let is_removed = self.is_named && fstat(&self.fd).is_ok_and(|file| file.st_nlink == 0);
        if is_removed { Err(Error::Removed) } else { Ok(()) }
    }

    fn read_whole(&self, mut offset: u64, mut into: &mut [u8]) -> Result<(), Error> {
        while !into.is_empty() {
            let count = match rustix::io::pread(&self.fd, &mut *into, offset) {
                Err(Errno::INTR) => continue,
                // The file was cut behind our back.
                Ok(0) => return Err(Error::io("read", offset, Errno::IO)),
                Err(errno) => return Err(Error::io("read", offset, errno)),
                Ok(count) => count,
            };
            into = into.get_mut(count..).expect("a read gives at most what was asked for");
            offset += to_u64(count);
        }
        Ok(())
    }

    fn write_whole(&self, mut offset: u64, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            let count = match rustix::io::pwrite(&self.fd, data, offset) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Err(Error::io("write", offset, Errno::IO)),
                Err(errno) => return Err(Error::io("write", offset, errno)),
                Ok(count) => count,
            };
            data = data.get(count..).expect("a write takes at most what it was given");
            offset += to_u64(count);
        }
        Ok(())
    }
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Has the next reads come from the medium. After a failed flush the kernel calls the pages clean
/// that were not written, and goes on giving them out (fsync(2)); the failure is reported once, to
/// the writer of then. A mount must not judge by what is not there.
fn forget_cached(fd: &OwnedFd, path: &Path) -> Result<(), Error> {
    let forgotten = retry_on_intr(|| rustix::fs::fdatasync(fd))
        .and_then(|()| rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed));
    forgotten.map_err(|errno| Error::path("flush", path, errno))
}

/// Whether what is written at a path lies in the machine's memory: tmpfs, ramfs (statfs(2)). False
/// where the file system does not say.
pub fn lies_in_memory(path: &Path) -> bool {
    const IN_MEMORY: [i128; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path).is_ok_and(|found| IN_MEMORY.contains(&i128::from(found.f_type)))
}

/// Whether the file system is one that another process or machine serves, or does not say what it
/// is.
fn is_served(fd: &OwnedFd) -> bool {
    fstatfs(fd).map_or(true, |found| SERVED.contains(&i128::from(found.f_type)))
}

/// Follows links; anything but a regular file or a block device is refused before it is opened. A
/// file system that another process serves gives up what is interrupted, for whatever reason.
fn file_type(path: &Path) -> Result<FileType, Error> {
    let found = retry_on_intr(|| stat(path)).map_err(|errno| refused(path, errno))?;
    match FileType::from_raw_mode(found.st_mode) {
        kind @ (FileType::RegularFile | FileType::BlockDevice) => Ok(kind),
        _ => Err(Error::NotAFileOrBlockDevice { path: path.to_path_buf() }),
    }
}

fn refused(path: &Path, errno: Errno) -> Error {
    let path = path.to_path_buf();
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::NXIO => Error::NotFound { path },
        Errno::ACCESS | Errno::PERM => Error::PermissionDenied { path },
        Errno::ROFS => Error::ReadOnly { path },
        // ETXTBSY: an active swap file or a running program.
        Errno::BUSY | Errno::TXTBSY => match mount_point(&path) {
            Some(mount_point) => Error::Mounted { path, mount_point },
            None => Error::InUse { path },
        },
        errno => Error::path("open", &path, errno),
    }
}

/// flock(2) keeps out every other wirespool, on block devices too, where `O_EXCL` already keeps out
/// the kernel.
fn lock(fd: &OwnedFd, path: &Path, operation: FlockOperation) -> Result<(), Error> {
    match rustix::fs::flock(fd, operation) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(Error::InUse { path: path.to_path_buf() }),
        Err(errno) => Err(Error::path("lock", path, errno)),
    }
}

/// Locks the bytes of the file that a target lies in, which other loop devices over it do not hide.
/// Gives that file, where it is another one. One that is out of reach, or on a file system without
/// such locks, is not locked: the claims of `volume` are left.
fn lock_bytes(fd: &OwnedFd, path: &Path, access: Access) -> Result<Option<OwnedFd>, Error> {
    let Storage { root: Root::File { device, inode, path: file }, bytes } = Storage::of(path)
    else {
        return Ok(None);
    };
    let is_exclusive = access == Access::Exclusive;
    let is_it =
        |fd: &OwnedFd| fstat(fd).is_ok_and(|found| (found.st_dev, found.st_ino) == (device, inode));
    let backing = if is_it(fd) {
        None
    } else {
        let how = if is_exclusive { OFlags::RDWR } else { OFlags::RDONLY };
        let opened = openat(CWD, &file, how | OFlags::CLOEXEC, Mode::empty());
        let Some(opened) = opened.ok().filter(is_it) else { return Ok(None) };
        Some(opened)
    };
    match lock_range(backing.as_ref().unwrap_or(fd), &bytes, is_exclusive) {
        Err(Errno::AGAIN | Errno::ACCESS) => {
            let path = path.to_path_buf();
            let is_behind = backing.is_some();
            Err(if is_behind { Error::BackingInUse { path, file } } else { Error::InUse { path } })
        }
        _ => Ok(backing),
    }
}

fn check_logical_block(fd: &OwnedFd, path: &Path) -> Result<(), Error> {
    let size = ioctl_blksszget(fd).map_err(|errno| Error::path("examine", path, errno))?;
    let size_bytes = u64::from(size);
    if size_bytes > to_u64(ROW_SIZE) {
        return Err(Error::LogicalBlock { path: path.to_path_buf(), size_bytes });
    }
    Ok(())
}

/// `major:minor` of a block device, as sysfs and mountinfo write it.
fn device_number(path: &Path) -> Option<String> {
    let found = stat(path).ok()?;
    (FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice)
        .then(|| format!("{}:{}", major(found.st_rdev), minor(found.st_rdev)))
}

fn is_read_only_device(path: &Path) -> bool {
    device_number(path)
        .and_then(|number| std::fs::read_to_string(format!("/sys/dev/block/{number}/ro")).ok())
        .is_some_and(|text| text.trim() == "1")
}

/// Where a block device is mounted, if it is: the third and fifth field of `proc_pid_mountinfo(5)`.
fn mount_point(path: &Path) -> Option<PathBuf> {
    let number = device_number(path)?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        (fields.next() == Some(number.as_str())).then(|| fields.nth(1).map(PathBuf::from))?
    })
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(ROW_SIZE) == 0
}

fn with_bounce<T>(work: impl FnOnce(&mut Bounce) -> T) -> T {
    thread_local! {
        static BOUNCE: RefCell<Bounce> = RefCell::default();
    }
    BOUNCE.with_borrow_mut(work)
}
