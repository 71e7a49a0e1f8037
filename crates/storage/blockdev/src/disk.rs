//! What the kernel knows of the disk behind a block device.

use std::fs;
use std::path::{Path, PathBuf};

use format::claim::{INTERVAL_MS, INTERVAL_ROTATING_MS};
use host::{DeviceNumber, children};
use rustix::fs::{FileType, stat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::drive::{self, Drive};
use crate::usage::{name_of, sysfs, sysfs_of};

/// A disk as its request queue in sysfs describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// It turns: its inner tracks are slower than its outer ones. A virtual disk may say so
    /// wrongly.
    pub is_rotational: bool,
    /// Unit of discards in bytes; `None` where the disk takes none.
    pub discard_granularity: Option<u64>,
}

/// The disk that a block device is, or is a partition of; `None` for anything else, and where sysfs
/// does not say.
pub fn of(path: &Path) -> Result<Option<Disk>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
        return Ok(None);
    }
    let place = sysfs(&found);
    // A partition has no queue of its own.
    let queues = [place.join("queue"), place.join("../queue")];
    Ok(queues.into_iter().find(|queue| queue.is_dir()).and_then(|queue| read(&queue)))
}

/// A block device as sysfs describes it. What it does not have is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// The kernel's name: `sda`, `md0`, `nvme0n1p2`.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// As the maker calls it; of a partition, that of its disk, and so on.
    pub model: Option<String>,
    /// What distinguishes it from others of its model: serial number, or world wide name.
    pub serial: Option<String>,
    /// Revision of the firmware.
    pub firmware: Option<String>,
    /// It says that it turns. A virtual disk may say so wrongly.
    pub is_rotational: bool,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// The kernel cuts what is longer than this, in bytes, into several requests.
    #[serde(default)]
    pub request_bytes_max: Option<u64>,
    /// Bytes that lie on one of several disks before the next one has its turn, where the device
    /// says that it is built so.
    #[serde(default)]
    pub chunk_bytes: Option<u64>,
    /// It is a cache in front of another device that keeps writes, as bcache in writeback mode.
    #[serde(default)]
    pub keeps_writes: bool,
    /// What the drive reports of itself, where [`layers_with_drives`] asked it.
    #[serde(default)]
    pub drive: Option<Drive>,
}

/// The devices that carry a block device, or the file system of anything else: itself first, then
/// what it is built on. None for a file system without a device.
pub fn layers(path: &Path) -> Result<Vec<Layer>, Error> {
    Ok(places(path)?.iter().map(|place| layer(place)).collect())
}

/// The disks that carry a block device, or the file system of anything else, by number and name:
/// those of [`layers`], and of a partition the disk that it is of, which is what limits are for.
pub fn disks_below(path: &Path) -> Result<Vec<(DeviceNumber, String)>, Error> {
    let of_place = |place: &PathBuf| {
        let disk = disk_of(place);
        let number = fs::read_to_string(disk.join("dev")).ok()?.parse().ok()?;
        Some((number, name_of(disk)))
    };
    Ok(places(path)?.iter().filter_map(of_place).collect())
}

/// Where sysfs has the devices of [`layers`].
fn places(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let place = if is_device { sysfs(&found) } else { sysfs_of(found.st_dev) };
    let mut places = Vec::new();
    let mut next = vec![place];
    while let Some(place) = next.pop() {
        if places.len() == LAYERS_MAX || !place.join("dev").exists() {
            continue;
        }
        let mut below = children(&place.join("slaves"));
        below.reverse();
        next.extend(below.iter().map(|link| fs::canonicalize(link).unwrap_or(link.clone())));
        places.push(place);
    }
    Ok(places)
}

/// The disk of a partition; anything else itself.
fn disk_of(place: &Path) -> &Path {
    let is_partition = place.join("partition").exists();
    place.parent().filter(|_| is_partition).unwrap_or(place)
}

/// The same, and each drive is asked for its health, its link and how it writes: commands that take
/// milliseconds, or, of a drive that does not answer, two seconds.
pub fn layers_with_drives(path: &Path) -> Result<Vec<Layer>, Error> {
    let mut layers = layers(path)?;
    for layer in &mut layers {
        let link = Path::new("/sys/class/block").join(&layer.name);
        let place = fs::canonicalize(&link).unwrap_or(link);
        let disk = disk_of(&place);
        layer.drive = drive::of(disk, &Path::new("/dev").join(name_of(disk)));
    }
    Ok(layers)
}

/// How often a writer on these disks or files renews its claim, in milliseconds. One disk with
/// platters counts for all. Such disks are SCSI's and its like; what virtual ones say is no use.
pub fn claim_interval_ms<'a>(members: impl IntoIterator<Item = &'a Path>) -> u32 {
    let has_platters = |layer: &Layer| layer.is_rotational && layer.name.starts_with("sd");
    let rotates = |path| layers(path).is_ok_and(|layers| layers.iter().any(has_platters));
    if members.into_iter().any(rotates) { INTERVAL_ROTATING_MS } else { INTERVAL_MS }
}

/// Which device a node is of: its number, and which disk it is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    number: u64,
    /// Rises with every disk that the kernel meets; `None` before Linux 5.15.
    sequence: Option<u64>,
}

/// Which device the node at `path` is of.
pub fn node(path: &Path) -> Result<Node, Error> {
    let found = stat(path).map_err(|errno| Error::path("examine", path, errno))?;
    let place = sysfs(&found);
    let places = [place.join("diskseq"), place.join("../diskseq")];
    let text = places.iter().find_map(|place| fs::read_to_string(place).ok());
    let sequence = text.and_then(|text| text.trim().parse().ok());
    Ok(Node { number: found.st_rdev, sequence })
}

/// More than any sane stack has.
const LAYERS_MAX: usize = 64;
/// What a single disk says for its sector is no chunk.
const CHUNK_MIN: u64 = 4096;

pub(crate) fn layer(place: &Path) -> Layer {
    // A partition has only a size of its own.
    let disk = disk_of(place);
    let text = |name: &str| {
        let text = fs::read_to_string(disk.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let first = |names: &[&str]| names.iter().find_map(|name| text(name));
    let sectors: u64 = fs::read_to_string(place.join("size"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    let number = |name: &str| text(name)?.parse::<u64>().ok().filter(|number| *number > 0);
    // A striped device says its chunk and its stripe: Documentation/ABI/stable/sysfs-block.
    let chunk = number("queue/minimum_io_size").zip(number("queue/optimal_io_size"));
    let active = |line: String| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    Layer {
        name: name_of(place),
        // Sectors of 512 bytes, whatever the disk's own are: Documentation/ABI/stable/sysfs-block.
        size_bytes: sectors * 512,
        model: first(&["device/model", "dm/name", "md/level"]),
        serial: first(&["device/serial", "serial", "device/wwid", "wwid", "dm/uuid", "md/uuid"]),
        firmware: first(&["device/firmware_rev", "device/rev"]),
        is_rotational: text("queue/rotational").as_deref() == Some("1"),
        write_cache: text("queue/write_cache"),
        scheduler: text("queue/scheduler").and_then(active),
        request_bytes_max: number("queue/max_sectors_kb").map(|kib| kib.saturating_mul(1024)),
        chunk_bytes: chunk
            .filter(|(chunk, stripe)| *chunk > CHUNK_MIN && stripe > chunk)
            .map(|(chunk, _)| chunk),
        // Documentation/admin-guide/bcache.rst.
        keeps_writes: text("bcache/cache_mode").is_some_and(|modes| modes.contains("[writeback]")),
        drive: None,
    }
}

fn read(queue: &Path) -> Option<Disk> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(queue.join(name)).ok()?.trim().parse().ok()
    };
    // A disk without discards has a granularity of 0, or a longest discard of 0:
    // Documentation/ABI/stable/sysfs-block.
    let takes_discards = number("discard_max_bytes").is_some_and(|bytes| bytes > 0);
    let granularity = number("discard_granularity").filter(|&bytes| bytes > 0 && takes_discards);
    Some(Disk { is_rotational: number("rotational")? == 1, discard_granularity: granularity })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let path = folder.path().to_path_buf();
        (folder, path)
    }

    #[test]
    fn disks_are_told_apart() {
        let (_kept, flash) = queue(&[
            ("rotational", "0\n"),
            ("discard_granularity", "512\n"),
            ("discard_max_bytes", "2147450880\n"),
        ]);
        let expected = Disk { is_rotational: false, discard_granularity: Some(512) };
        assert_eq!(read(&flash), Some(expected));
        let (_kept, turning) = queue(&[
            ("rotational", "1\n"),
            ("discard_granularity", "512\n"),
            ("discard_max_bytes", "0\n"),
        ]);
        let expected = Disk { is_rotational: true, discard_granularity: None };
        assert_eq!(read(&turning), Some(expected));
        let (_kept, unknown) = queue(&[]);
        assert_eq!(read(&unknown), None);
    }

    #[test]
    fn a_device_is_described_by_what_sysfs_tells() {
        let (_kept, place) = queue(&[("size", "2048\n"), ("serial", " X-12 \n")]);
        let found = layer(&place);
        assert_eq!((found.size_bytes, found.serial.as_deref()), (1 << 20, Some("X-12")));
        assert_eq!((found.model, found.scheduler, found.is_rotational), (None, None, false));
    }

    #[test]
    fn requests_have_a_longest_and_stripes_a_chunk() {
        let of = |sizes: [&str; 3]| {
            let (_kept, place) = queue(&[("size", "8\n")]);
            fs::create_dir(place.join("queue")).unwrap();
            for (name, text) in
                ["max_sectors_kb", "minimum_io_size", "optimal_io_size"].iter().zip(sizes)
            {
                fs::write(place.join("queue").join(name), text).unwrap();
            }
            let found = layer(&place);
            (found.request_bytes_max, found.chunk_bytes)
        };
        assert_eq!(of(["512\n", "524288\n", "1572864\n"]), (Some(512 << 10), Some(512 << 10)));
        assert_eq!(of(["1280", "4096", "0"]), (Some(1280 << 10), None));
        assert_eq!(of(["0", "4096", "131072"]), (None, None), "a sector, and a drive's wish");
    }

    #[test]
    fn a_partition_is_limited_as_its_disk() {
        let (_kept, disk) = queue(&[("dev", "8:0\n")]);
        let part = disk.join("sda1");
        fs::create_dir(&part).unwrap();
        assert_eq!(disk_of(&part), part);
        fs::write(part.join("partition"), "1\n").unwrap();
        assert_eq!((disk_of(&part), disk_of(&disk)), (&*disk, &*disk));
    }

    #[test]
    fn a_file_is_no_disk() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(of(file.path()).unwrap(), None);
    }
}
