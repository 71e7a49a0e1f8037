//! Which bytes a path stands for in the end: two names may be of one and the same storage.
//!
//! Followed are links, loop devices down to the file behind them, and partitions to their disk, as
//! sysfs knows them. Not here: device-mapper and md, whose members the kernel claims for them, and
//! what other machines reach (`volume` has its claims for that).

use core::ops::Range;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, major, makedev, minor, stat};

use crate::{Error, patiently, side_by_side};

/// So many loop devices may lie on each other.
const DEPTH_MAX: usize = 8;
/// Of the sizes in sysfs.
const SECTOR_BYTES: u64 = 512;

/// Bytes of something that is not part of anything else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Storage {
    pub(crate) root: Root,
    pub(crate) bytes: Range<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    /// A file: device and inode number, and where it was found.
    File { device: u64, inode: u64, path: PathBuf },
    /// A disk, by its device number.
    Disk(u64),
    /// Nothing yet; a file will be made there.
    Absent(PathBuf),
}

impl Root {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { device, inode, .. },
                Self::File { device: other_device, inode: other_inode, .. },
            ) => (device, inode) == (other_device, other_inode),
            (own, other) => own == other,
        }
    }
}

impl Storage {
    /// What lies behind `path`.
    pub(crate) fn of(path: &Path) -> Self {
        Self::behind(path, 0)
    }

    fn behind(path: &Path, depth: usize) -> Self {
        let whole = |root| Self { root, bytes: 0..u64::MAX };
        let Ok(found) = stat(path) else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default();
            return whole(Root::Absent(folder.join(path.file_name().unwrap_or_default())));
        };
        if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice {
            return Self::of_device(found.st_rdev, depth);
        }
        let (device, inode, path) = (found.st_dev, found.st_ino, path.to_path_buf());
        whole(Root::File { device, inode, path })
    }

    fn of_device(number: u64, depth: usize) -> Self {
        let place = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        let place = Path::new(&place);
        let size_bytes = figure(place, "size").map_or(u64::MAX, |size| size * SECTOR_BYTES);
        let own = Self { root: Root::Disk(number), bytes: 0..size_bytes };
        if depth > DEPTH_MAX {
            return own;
        }
        if place.join("partition").exists() {
            let disk = place.canonicalize().ok().and_then(|it| number_of(it.parent()?));
            let begin = figure(place, "start").map(|start| start * SECTOR_BYTES);
            return match (disk, begin) {
                (Some(disk), Some(begin)) => {
                    Self::of_device(disk, depth + 1).part(begin, size_bytes)
                }
                _ => own,
            };
        }
        // "The path ... (deleted)" where it is gone: no other process can open that file any more.
        let Ok(file) = fs::read_to_string(place.join("loop/backing_file")) else { return own };
        let file = Path::new(file.strip_suffix('\n').unwrap_or(&file));
        let begin = figure(place, "loop/offset").unwrap_or(0);
        if file.exists() { Self::behind(file, depth + 1).part(begin, size_bytes) } else { own }
    }

    fn part(self, begin: u64, size_bytes: u64) -> Self {
        let begin = self.bytes.start.saturating_add(begin);
        let end = begin.saturating_add(size_bytes).min(self.bytes.end);
        Self { bytes: begin..end, ..self }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (own, others) = (&self.bytes, &other.bytes);
        self.root.is(&other.root) && own.start < others.end && others.start < own.end
    }
}

fn figure(place: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(place.join(name)).ok()?.trim().parse().ok()
}

fn number_of(place: &Path) -> Option<u64> {
    let text = fs::read_to_string(place.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Refuses paths of which two stand for the same storage, or for a part of it: a file and a loop
/// device over it, two of those, a disk and its partition, a link and where it leads to.
///
/// # Errors
/// [`Error::SameStorage`]; [`Error::Silent`] and [`Error::Interrupted`] of places that hang.
pub fn refuse_same_storage<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let mut before: Vec<(&Path, Storage)> = Vec::new();
    let paths: Vec<&Path> = paths.into_iter().collect();
    let storages = side_by_side("look", &paths, |path| {
        let own = path.to_path_buf();
        patiently(path, move || Storage::of(&own))
    });
    for (path, storage) in paths.into_iter().zip(storages) {
        let storage = storage?;
        if let Some((first, _)) = before.iter().find(|(_, other)| other.overlaps(&storage)) {
            let (first, second) = (first.to_path_buf(), path.to_path_buf());
            return Err(Error::SameStorage { first, second });
        }
        before.push((path, storage));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_are_told_from_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other, link] = ["file", "other", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "a").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let around = folder.path().join(".").join("file");
        assert!(refuse_same_storage([&*file, &*other]).is_ok());
        for name in [&link, &around, &file] {
            let error = refuse_same_storage([&*other, &*file, &**name]).unwrap_err();
            let expected = Error::SameStorage { first: file.clone(), second: name.clone() };
            assert_eq!(error.to_string(), expected.to_string());
        }
        // Neither is there yet.
        let absent = folder.path().join(".").join("other");
        assert!(refuse_same_storage([&*absent, &*other]).is_err());
    }

    #[test]
    fn parts_of_one_disk_are_the_same_storage_where_they_meet() {
        let disk = Storage { root: Root::Disk(7), bytes: 0..1000 };
        let part = |begin, size| disk.clone().part(begin, size);
        assert_eq!(part(100, 5000).bytes, 100..1000);
        assert!(disk.overlaps(&part(999, 1)) && part(100, 100).overlaps(&part(199, 1)));
        assert!(!part(100, 100).overlaps(&part(200, 100)));
        assert!(!disk.overlaps(&Storage { root: Root::Disk(8), ..disk.clone() }));
        assert_eq!(part(100, 100).part(10, 20).bytes, 110..130, "a loop over a partition");
    }
}
