//! A partition table with one partition, so that other tools do not take a member for a blank disk.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files and may sleep")]
#![expect(unsafe_code, reason = "partitions are announced by ioctls without a safe wrapper")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::partition_types::LINUX_FS;
use gpt::{GptConfig, GptError};
use host::SystemClock;
use host::children;
use rustix::fs::{FileType, SeekFrom, ioctl_blksszget, seek, stat};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Setter, ioctl, opcode};

use crate::usage::{name_of, sysfs};

use crate::Error;
use units::Clock;

/// Where partitions begin and end.
const ALIGNMENT: u64 = 1 << 20;

/// How long the node of a new partition may take to appear, in nanoseconds.
const NODE_WAIT_NS: i64 = 5_000_000_000;

/// The one partition of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its node; `None` for an image in a regular file.
    pub path: Option<PathBuf>,
    /// Where it begins on the disk.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Replaces whatever table a disk or image has by a GPT with one Linux partition named `wirespool`
/// over all of it, and has the kernel read it.
pub fn write(path: &Path) -> Result<Partition, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    let is_disk = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if is_disk {
        // Against every program that has claimed the disk or a partition of it: open(2).
        options.custom_flags(libc::O_EXCL);
    }
    let mut disk = options.open(path).map_err(|error| Error::path("open", path, error))?;
    let sector = if is_disk {
        ioctl_blksszget(&disk).map_err(|errno| Error::path("examine", path, errno))?
    } else {
        512
    };
    let table = |source| Error::PartitionTable { path: path.to_path_buf(), source };
    let mut partition = lay_out(&mut disk, sector).map_err(table)?;
    disk.sync_all().map_err(|error| Error::path("flush", path, error))?;
    if is_disk {
        let place = sysfs(&found);
        announce(&disk, &place, &partition)
            .map_err(|errno| Error::path("announce the partition of", path, errno))?;
        drop(disk);
        partition.path = Some(node(path, &place)?);
    }
    Ok(partition)
}

/// Takes away the table that [`write()`] has put on a disk: where nothing came of what it was for,
/// it would be in the way of the next one. Nothing of the partition is kept.
pub fn erase(path: &Path) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_EXCL);
    let mut disk = options.open(path).map_err(|error| Error::path("open", path, error))?;
    let zeroed = zero_ends(&mut disk).and_then(|()| disk.sync_all());
    zeroed.map_err(|error| Error::path("write", path, error))?;
    forget(&disk).map_err(|errno| Error::path("announce the partition of", path, errno))
}

/// Both tables lie outside what is aligned.
fn zero_ends(disk: &mut File) -> io::Result<()> {
    let size_bytes = disk.seek(io::SeekFrom::End(0))?;
    let len = ALIGNMENT.min(size_bytes);
    let zeros = vec![0; usize::try_from(len).expect("1 MiB fits")];
    for offset in [0, size_bytes - len] {
        disk.seek(io::SeekFrom::Start(offset))?;
        disk.write_all(&zeros)?;
    }
    Ok(())
}

/// Writes both tables and the protective MBR.
fn lay_out(disk: &mut File, sector: u32) -> Result<Partition, GptError> {
    let block = match sector {
        512 => LogicalBlockSize::Lb512,
        4096 => LogicalBlockSize::Lb4096,
        _ => return Err(GptError::Overflow("sectors are neither 512 nor 4096 bytes")),
    };
    let sector = u64::from(sector);
    let size_bytes = seek(&*disk, SeekFrom::End(0)).map_err(io::Error::from)?;
    let covered = u32::try_from(size_bytes / sector - 1).unwrap_or(u32::MAX);
    ProtectiveMBR::with_lb_size(covered)
        .overwrite_lba0(disk)
        .map_err(|_| GptError::Overflow("the protective MBR cannot be written"))?;
    let config = GptConfig::new().writable(true).logical_block_size(block);
    let mut table = config.create_from_device(disk, None)?;
    table.update_partitions(BTreeMap::new())?;
    let end = (table.header().last_usable + 1) * sector / ALIGNMENT * ALIGNMENT;
    let size_bytes = end.checked_sub(ALIGNMENT).filter(|&size| size > 0);
    let size_bytes = size_bytes.ok_or(GptError::NotEnoughSpace)?;
    table.add_partition_at("wirespool", 1, ALIGNMENT / sector, size_bytes / sector, LINUX_FS, 0)?;
    table.write()?;
    Ok(Partition { path: None, offset_bytes: ALIGNMENT, size_bytes })
}

/// Has the kernel forget the old partitions and learn the new one. A kernel that reads no GPT, or
/// no tables on this device, gets the new partition by an ioctl.
fn announce(disk: &File, place: &Path, partition: &Partition) -> rustix::io::Result<()> {
    read_again(disk)?;
    if first_partition(place).is_some() {
        return Ok(());
    }
    let bytes = |value| i64::try_from(value).map_err(|_| Errno::OVERFLOW);
    let description = BlkpgPartition {
        start: bytes(partition.offset_bytes)?,
        length: bytes(partition.size_bytes)?,
        ..BlkpgPartition::FIRST
    };
    change(disk, ADD, &description)
}

/// Has the kernel forget the partition.
fn forget(disk: &File) -> rustix::io::Result<()> {
    // ENXIO: it has none. One that was added by an ioctl is not forgotten by reading.
    match change(disk, DELETE, &BlkpgPartition::FIRST) {
        Ok(()) | Err(Errno::NXIO) => read_again(disk),
        Err(errno) => Err(errno),
    }
}

/// Has the kernel read the table; one that reads none says so.
fn read_again(disk: &File) -> rustix::io::Result<()> {
    // SAFETY: BLKRRPART takes no argument: linux/fs.h.
    let read_again = unsafe { NoArg::<{ opcode::none(0x12, 95) }>::new() };
    // SAFETY: the request reads and writes no memory of ours.
    match unsafe { ioctl(disk, read_again) } {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Adds or deletes a partition that the kernel knows.
fn change(disk: &File, operation: i32, description: &BlkpgPartition) -> rustix::io::Result<()> {
    let argument = BlkpgArgument {
        operation,
        flags: 0,
        size: i32::try_from(size_of::<BlkpgPartition>()).expect("152 bytes"),
        data: &raw const *description,
    };
    // SAFETY: BLKPG reads a `blkpg_ioctl_arg`, which `BlkpgArgument` is: linux/blkpg.h.
    let change = unsafe { Setter::<{ opcode::none(0x12, 105) }, BlkpgArgument>::new(argument) };
    // SAFETY: the description that the argument points to outlives the call, which only reads it.
    unsafe { ioctl(disk, change) }
}

/// `BLKPG_ADD_PARTITION` and `BLKPG_DEL_PARTITION` of linux/blkpg.h.
const ADD: i32 = 1;
const DELETE: i32 = 2;

/// `struct blkpg_ioctl_arg` of linux/blkpg.h.
#[repr(C)]
struct BlkpgArgument {
    operation: i32,
    flags: i32,
    size: i32,
    data: *const BlkpgPartition,
}

/// `struct blkpg_partition` of linux/blkpg.h, in bytes.
#[repr(C)]
struct BlkpgPartition {
    start: i64,
    length: i64,
    number: i32,
    device_name: [u8; 64],
    volume_name: [u8; 64],
}

impl BlkpgPartition {
    /// All that deleting it takes.
    const FIRST: Self =
        Self { start: 0, length: 0, number: 1, device_name: [0; 64], volume_name: [0; 64] };
}

/// The place in sysfs of the partition with number 1.
fn first_partition(disk: &Path) -> Option<PathBuf> {
    children(disk).into_iter().find(|child| {
        fs::read_to_string(child.join("partition")).is_ok_and(|number| number.trim() == "1")
    })
}

/// The node of the first partition, once it is there: devtmpfs makes it at once, udev may replace
/// it.
fn node(disk: &Path, place: &Path) -> Result<PathBuf, Error> {
    let deadline = SystemClock.boottime_ns() + NODE_WAIT_NS;
    loop {
        let node = first_partition(place).map(|place| Path::new("/dev").join(name_of(&place)));
        if let Some(node) = node.filter(|node| node.exists()) {
            return Ok(node);
        }
        if SystemClock.boottime_ns() > deadline {
            return Err(Error::NoPartition { path: disk.to_path_buf() });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
