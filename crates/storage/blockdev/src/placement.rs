//! Where files lie on disks: the partition or disk of a file system, and the extents of a file by
//! `FS_IOC_FIEMAP` (`linux/fiemap.h`).

#![expect(unsafe_code, reason = "FS_IOC_FIEMAP is an ioctl without a safe wrapper")]

use core::mem::size_of;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::DeviceNumber;
use host::children;
use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::ioctl::{Updater, ioctl, opcode};

use crate::Error;
use crate::usage::sysfs_of;

/// A whole disk, and where a device begins on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Disk {
    /// The disk: it is what requests are made to.
    pub device: DeviceNumber,
    /// First byte of the partition on it; 0 of the disk itself.
    pub begin: u64,
    /// Bytes of the partition, or of the disk.
    pub len: u64,
}

/// The disk that a device is, or is a partition of; `None` for what sysfs does not know, such as
/// the numbers that btrfs gives.
pub fn disk_of(device: DeviceNumber) -> Option<Disk> {
    let place = sysfs_of(rustix::fs::makedev(device.major, device.minor));
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(place.join(name)).ok()?.trim().parse().ok()
    };
    let len = number("size")?.checked_mul(512)?;
    if !place.join("partition").exists() {
        return Some(Disk { device, begin: 0, len });
    }
    let disk = fs::read_to_string(place.parent()?.join("dev")).ok()?;
    // Units of 512 bytes, whatever the disk's own are: Documentation/ABI/stable/sysfs-block.
    let begin = number("start")?.checked_mul(512)?;
    Some(Disk { device: disk.parse().ok()?, begin, len })
}

/// Where something is that the user names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPlace {
    /// The path, links followed.
    pub path: PathBuf,
    /// It is a block device.
    pub is_device: bool,
    /// The device, or that of the file system, on its disk.
    pub disk: Option<Disk>,
    /// The disks that requests to it end at: several where it is built on others.
    pub disks: Vec<DeviceNumber>,
}

/// Where a folder, a file or a block device is.
///
/// # Errors
///
/// It is not there, or its file system is on no block device.
pub fn place_of(path: &Path) -> Result<TargetPlace, Error> {
    let whole = fs::canonicalize(path).map_err(|error| Error::path("find", path, error))?;
    let found = rustix::fs::stat(&whole).map_err(|errno| Error::path("examine", path, errno))?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let number = if is_device { found.st_rdev } else { found.st_dev };
    let disk = disk_of(DeviceNumber::of_stat(number));
    let disks = disk.map(|disk| below(disk.device)).unwrap_or_default();
    if disks.is_empty() {
        let no_disk = io::Error::other("it is on no block device");
        return Err(Error::path("look at", path, no_disk));
    }
    Ok(TargetPlace { path: whole, is_device, disk, disks })
}

/// The disks that a device is built on; itself, where it is on none.
fn below(device: DeviceNumber) -> Vec<DeviceNumber> {
    /// More than any sane stack has.
    const LAYERS_MAX: usize = 64;
    let (mut ends, mut next) = (Vec::new(), vec![device]);
    for _ in 0..LAYERS_MAX {
        let Some(device) = next.pop() else { break };
        let place = sysfs_of(rustix::fs::makedev(device.major, device.minor));
        let numbers = children(&place.join("slaves")).into_iter().filter_map(|link| {
            let number = fs::read_to_string(link.join("dev")).ok()?.parse().ok()?;
            // Requests go to whole disks.
            disk_of(number).map(|disk| disk.device)
        });
        let numbers: Vec<DeviceNumber> = numbers.collect();
        if numbers.is_empty() {
            ends.push(device);
        }
        next.extend(numbers);
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// A file system on a block device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filesystem {
    /// What it is on.
    pub device: DeviceNumber,
    /// One place where it is mounted.
    pub mount_point: PathBuf,
    /// `ext4`, `xfs` and so on.
    pub kind: String,
    /// Its options, and those of the mount.
    pub options: String,
}

/// The file systems that are mounted here, by device (`proc_pid_mountinfo(5)`).
pub fn filesystems() -> BTreeMap<DeviceNumber, Filesystem> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = BTreeMap::new();
    for filesystem in text.lines().filter_map(filesystem) {
        // A bind mount shows a part: the first is the file system itself, as a rule.
        found.entry(filesystem.device).or_insert(filesystem);
    }
    found
}

pub(crate) fn filesystem(line: &str) -> Option<Filesystem> {
    let (fields, rest) = line.split_once(" - ")?;
    let mut fields = fields.split(' ').skip(2);
    let device = fields.next()?.parse().ok()?;
    let mount_point = crate::usage::unescape(fields.nth(1)?);
    let of_mount = fields.next()?;
    let mut rest = rest.split(' ');
    let (kind, source) = (rest.next()?.to_owned(), rest.next()?);
    let options = format!("{of_mount},{}", rest.next().unwrap_or_default());
    source.starts_with('/').then_some(Filesystem { device, mount_point, kind, options })
}

/// A part of a file that lies in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Bytes of the file before it.
    pub logical: u64,
    /// First byte on the device of the file system.
    pub physical: u64,
    /// Length in bytes.
    pub len: u64,
}

/// `struct fiemap` and `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    len: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS_AT_ONCE],
}

const EXTENTS_AT_ONCE: usize = 256;
/// The number of the request has the length of `struct fiemap` without extents.
const FIEMAP_HEADER: usize = 32;
const _: () = assert!(
    size_of::<Fiemap>() == FIEMAP_HEADER + EXTENTS_AT_ONCE * 56 && size_of::<Extent>() == 56
);
const FS_IOC_FIEMAP: rustix::ioctl::Opcode = opcode::read_write::<[u8; FIEMAP_HEADER]>(b'f', 11);
/// `FIEMAP_EXTENT_LAST`.
const LAST: u32 = 1;
/// Has no place, or not one of its own: `_UNKNOWN`, `_DELALLOC`, `_ENCODED`, `_DATA_INLINE`,
/// `_DATA_TAIL`.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400;

/// Where a file lies on the device of its file system, in the order of the file, up to so many
/// extents. Nothing is written for it: what has no place yet is left out.
///
/// # Errors
///
/// The file cannot be opened, or its file system does not say.
pub fn extents_of(path: &Path, most: usize) -> Result<Vec<FileExtent>, Error> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(CWD, path, flags, Mode::empty());
    let file = file.map_err(|errno| Error::path("open", path, errno))?;
    let (mut extents, mut start) = (Vec::new(), 0);
    loop {
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: u32::try_from(EXTENTS_AT_ONCE).expect("256"),
            reserved: 0,
            extents: [Extent::default(); EXTENTS_AT_ONCE],
        };
        // SAFETY: FS_IOC_FIEMAP reads and writes a `struct fiemap` and as many extents as its count
        // says, for which `Fiemap` has space.
        let ask = unsafe { Updater::<FS_IOC_FIEMAP, _>::new(&mut map) };
        // SAFETY: the same.
        let asked = unsafe { ioctl(&file, ask) };
        asked.map_err(|errno| Error::path("ask for the extents of", path, errno))?;
        let mapped = usize::try_from(map.mapped).unwrap_or(0);
        let found = map.extents.get(..mapped).unwrap_or_default();
        extents.extend(found.iter().filter(|extent| extent.flags & NO_PLACE == 0).map(|extent| {
            FileExtent { logical: extent.logical, physical: extent.physical, len: extent.len }
        }));
        let Some(last) = found.last().filter(|last| last.flags & LAST == 0) else { break };
        let next = last.logical.saturating_add(last.len);
        // A file system that goes back would keep us here.
        if extents.len() >= most || next <= start {
            break;
        }
        start = next;
    }
    extents.truncate(most);
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_of_a_disk_has_its_number_and_options() {
        let line = "29 1 254:0 / /data\\040x rw,relatime shared:1 - ext4 /dev/vda rw,discard";
        let found = filesystem(line).unwrap();
        assert_eq!(found.device.to_string(), "254:0");
        assert_eq!((found.mount_point.to_str(), &*found.kind), (Some("/data x"), "ext4"));
        assert_eq!(found.options, "rw,relatime,rw,discard");
        assert!(filesystem("22 1 0:5 / /proc rw - proc proc rw").is_none());
    }

    #[test]
    fn a_file_lies_within_the_device_of_its_file_system() {
        use std::os::unix::fs::MetadataExt;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, &vec![7; 1 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let device = DeviceNumber::of_stat(file.as_file().metadata().unwrap().dev());
        let Some(disk) = disk_of(device) else {
            return println!("not run: temporary files are on no disk");
        };
        let extents = extents_of(file.path(), 1000).unwrap();
        assert_eq!(extents.iter().map(|extent| extent.len).sum::<u64>(), 1 << 20);
        assert!(extents.iter().all(|extent| extent.physical + extent.len <= disk.len));
        assert!(extents_of(Path::new("absent"), 1).is_err());
    }
}
