//! Whether a disk, or a file that is the backing of one, is in use by this system.
//!
//! Looks at the target, its partitions or the disk it is a partition of, and the loop devices over
//! it: mounts, swap, holders in sysfs (md, dm, bcache), and at last an exclusive open, which also
//! sees claims that leave no other trace. Cannot see users on another machine or in a virtual
//! machine that do not claim the device.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use host::children;
use host::processes::{self, processes};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, major, minor, openat, stat};
use rustix::io::Errno;

use crate::Error;

/// Who has a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// It, one of its partitions, or a loop device over it is mounted.
    Mounted {
        /// The mounted device, as the kernel calls it.
        device: String,
        /// One of the places.
        mount_point: PathBuf,
    },
    /// It is swap space.
    Swap {
        /// The device or file.
        device: String,
    },
    /// Another device is built on it.
    Held {
        /// The device that is used.
        device: String,
        /// The device on top: `md0`, `dm-3 (vg-root)`, `loop7`.
        by: String,
    },
    /// A program has it, or a part of it, open for writing without having claimed it: a virtual
    /// machine, say.
    Open {
        /// The device that is open.
        device: String,
        /// Name of the program.
        program: String,
        /// Process id of the program.
        process: u32,
    },
    /// Another process has it open exclusively.
    Claimed,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, mount_point } => {
                write!(f, "{device} is mounted on {}", mount_point.display())
            }
            Self::Swap { device } => write!(f, "{device} is used as swap space"),
            Self::Held { device, by } => write!(f, "{device} is held by {by}"),
            Self::Open { device, program, process } => {
                write!(f, "{device} is open for writing by {program} (process {process})")
            }
            Self::Claimed => f.write_str("it is opened exclusively by another program"),
        }
    }
}

/// The first use found of a regular file or block device, `None` if it is free. Anything else is
/// free, too.
pub fn of(path: &Path) -> Result<Option<Use>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => of_file(path),
        FileType::BlockDevice => {
            let place = sysfs(&found);
            if let Some(used) = of_disk(&place)? {
                return Ok(Some(used));
            }
            is_claimed(path)
        }
        _ => Ok(None),
    }
}

/// The first use of a block device that can be named; a mere claim is none, so that who has claimed
/// it can look, too.
pub fn named_use(path: &Path) -> Result<Option<Use>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    of_disk(&sysfs(&found))
}

/// Another process that has a block device, a partition of it or the disk it is a partition of open
/// for writing. Sees the processes that this one may look into: as root, all of this namespace.
pub fn writer_of(path: &Path) -> Result<Option<Use>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    let devices: Vec<(String, String)> =
        overlapping(&sysfs(&found)).iter().map(|it| (number_of(it), name_of(it))).collect();
    let own = std::process::id();
    for process in processes().into_iter().filter(|process| *process != own) {
        let place = processes::place(process);
        for descriptor in children(&place.join("fd")) {
            let Some(number) = number_of_node(&descriptor) else { continue };
            let device = devices.iter().find(|(device, _)| *device == number);
            let Some((_, device)) = device else { continue };
            if may_write(&place.join("fdinfo").join(name_of(&descriptor))) {
                let program = processes::name(process).unwrap_or_default();
                let device = device.clone();
                return Ok(Some(Use::Open { device, program, process }));
            }
        }
    }
    Ok(None)
}

/// The partitions of a disk: names and nodes.
pub fn partitions(path: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    let children = children(&sysfs(&found)).into_iter();
    let parts = children.filter(|child| child.join("partition").exists());
    Ok(parts.map(|part| (name_of(&part), Path::new("/dev").join(name_of(&part)))).collect())
}

/// Whether this is a disk of its own that can have partitions: no partition, no md or dm device,
/// and no loop device without `--partscan`.
pub fn is_whole_disk(path: &Path) -> Result<bool, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
        return Ok(false);
    }
    let place = sysfs(&found);
    let built = ["partition", "md", "dm"].iter().any(|name| place.join(name).exists());
    let no_scan =
        fs::read_to_string(place.join("loop/partscan")).is_ok_and(|scan| scan.trim() == "0");
    // ext_range is 1 for a disk without partitions: block/genhd.c.
    let range = fs::read_to_string(place.join("ext_range")).unwrap_or_default();
    Ok(!built && !no_scan && range.trim().parse::<u32>().is_ok_and(|count| count > 1))
}

/// The directory of a block device in sysfs, resolved, so that its parent and children can be
/// reached.
pub(crate) fn sysfs(found: &Stat) -> PathBuf {
    sysfs_of(found.st_rdev)
}

/// The same by its number.
pub(crate) fn sysfs_of(device: u64) -> PathBuf {
    let number = format!("{}:{}", major(device), minor(device));
    let link = PathBuf::from("/sys/dev/block").join(number);
    fs::canonicalize(&link).unwrap_or(link)
}

fn of_file(path: &Path) -> Result<Option<Use>, Error> {
    let path = fs::canonicalize(path).map_err(|error| Error::path("resolve", path, error))?;
    if swaps().contains(&path) {
        return Ok(Some(Use::Swap { device: path.display().to_string() }));
    }
    for device in children(Path::new("/sys/block")) {
        let backing = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        if Path::new(backing.trim_end_matches('\n')) == path {
            let held = Use::Held { device: path.display().to_string(), by: name_of(&device) };
            return Ok(Some(of_disk(&device)?.unwrap_or(held)));
        }
    }
    Ok(None)
}

/// A disk or partition, and everything that shares bytes with it.
fn overlapping(place: &Path) -> Vec<PathBuf> {
    let mut overlapping = vec![place.to_path_buf()];
    overlapping
        .extend(children(place).into_iter().filter(|child| child.join("partition").exists()));
    if place.join("partition").exists() {
        overlapping.extend(place.parent().map(Path::to_path_buf));
    }
    overlapping
}

/// Mounts of this process and of every other mount namespace that it can see: a container's disk is
/// in use as well.
fn mounts() -> Result<String, Error> {
    let own = Path::new("/proc/self/mountinfo");
    let mut text = fs::read_to_string(own).map_err(|error| Error::path("read", own, error))?;
    let mut seen = vec![fs::read_link("/proc/self/ns/mnt").unwrap_or_default()];
    for process in processes() {
        let place = processes::place(process);
        let Ok(namespace) = fs::read_link(place.join("ns/mnt")) else { continue };
        if !seen.contains(&namespace) {
            seen.push(namespace);
            text.push_str(&fs::read_to_string(place.join("mountinfo")).unwrap_or_default());
        }
    }
    Ok(text)
}

/// A descriptor's flags, in octal digits: `proc_pid_fdinfo(5)`.
fn may_write(fdinfo: &Path) -> bool {
    let text = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // O_RDONLY is 0 in the lowest two bits: open(2).
    flags.is_some_and(|flags| flags & 3 != 0)
}

/// Uses of a disk or partition and of everything that overlaps it.
fn of_disk(place: &Path) -> Result<Option<Use>, Error> {
    let overlapping = overlapping(place);
    let mounts = mounts()?;
    let swaps: Vec<String> = swaps().iter().filter_map(|swap| number_of_node(swap)).collect();
    for place in overlapping {
        let (device, number) = (name_of(&place), number_of(&place));
        if let Some(mount_point) = mount_point(&mounts, &number) {
            return Ok(Some(Use::Mounted { device, mount_point }));
        }
        if swaps.contains(&number) {
            return Ok(Some(Use::Swap { device }));
        }
        if let Some(holder) = children(&place.join("holders")).first() {
            let by = match fs::read_to_string(holder.join("dm/name")) {
                Ok(mapped) => format!("{} ({})", name_of(holder), mapped.trim()),
                Err(_) => name_of(holder),
            };
            return Ok(Some(Use::Held { device, by }));
        }
    }
    Ok(None)
}

/// `O_EXCL` without `O_CREAT` on a block device fails while a program has claimed it: open(2).
fn is_claimed(path: &Path) -> Result<Option<Use>, Error> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(_) => Ok(None),
        Err(Errno::BUSY) => Ok(Some(Use::Claimed)),
        Err(errno) => Err(Error::path("open", path, errno)),
    }
}

pub(crate) fn name_of(place: &Path) -> String {
    place.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn number_of(place: &Path) -> String {
    fs::read_to_string(place.join("dev")).unwrap_or_default().trim().to_owned()
}

/// `major:minor` of a block device by its node.
fn number_of_node(node: &Path) -> Option<String> {
    let found = stat(node).ok()?;
    (FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice)
        .then(|| format!("{}:{}", major(found.st_rdev), minor(found.st_rdev)))
}

/// The first column of `proc_swaps(5)`, below its heading.
fn swaps() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let first = |line: &str| line.split_ascii_whitespace().next().map(unescape);
    table.lines().skip(1).filter_map(first).collect()
}

/// Where `number` is mounted: `proc_pid_mountinfo(5)`. Some file systems (btrfs) show a number of
/// their own, so the mount source counts as well.
fn mount_point(mounts: &str, number: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (fields, source) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(2);
        let (shown, place) = (fields.next()?, fields.nth(1)?);
        let source = source.split(' ').nth(1).map(unescape)?;
        let is_source = || number_of_node(&source).is_some_and(|source| source == number);
        (shown == number || is_source()).then(|| unescape(place))
    })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let plain =
        escapes.iter().fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain));
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_number_with_blanks_in_their_names() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/none rw\n\
                      30 22 7:0 /sub /mnt/a\\040b rw - xfs /dev/none rw\n\
                      31 22 0:44 / /broken\n";
        assert_eq!(mount_point(mounts, "7:0"), Some(PathBuf::from("/mnt/a b")));
        assert_eq!(mount_point(mounts, "8:1"), Some(PathBuf::from("/")));
        assert_eq!(mount_point(mounts, "0:44"), None);
    }

    #[test]
    fn an_ordinary_file_is_free_and_no_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, [0; 4096]).unwrap();
        assert_eq!(of(&path).unwrap(), None);
        assert!(!is_whole_disk(&path).unwrap());
        assert!(of(&directory.path().join("absent")).is_err());
    }
}
