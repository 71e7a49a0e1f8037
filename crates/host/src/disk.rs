//! What the kernel knows of the disk behind a block device.

use std::fs;
use std::path::Path;

use rustix::fs::{FileType, stat};

use crate::Error;
use crate::usage::sysfs;

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
/// does not tell.
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
    use std::path::PathBuf;

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
    fn a_file_is_no_disk() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(of(file.path()).unwrap(), None);
    }
}
