//! Which file lies where on which disk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use blockdev::placement::{Disk, FileExtent};
use host::DeviceNumber;

/// A file for all time: its file system's device, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileKey {
    /// What its file system is on.
    pub device: DeviceNumber,
    /// Inode number on that file system.
    pub inode: u64,
}

/// A part of a file on a disk.
#[derive(Clone, Copy, Debug)]
struct Part {
    len: u64,
    file: FileKey,
    /// Bytes of the file before it.
    logical: u64,
}

/// Files by their places, and their names.
#[derive(Debug, Default)]
pub(super) struct Files {
    parts: BTreeMap<(DeviceNumber, u64), Part>,
    places: BTreeMap<FileKey, Vec<(DeviceNumber, u64)>>,
    names: BTreeMap<FileKey, PathBuf>,
}

impl Files {
    /// Takes a file's name.
    pub(super) fn name_it(&mut self, file: FileKey, path: PathBuf) {
        self.names.entry(file).or_insert(path);
    }

    pub(super) fn name(&self, file: FileKey) -> Option<&PathBuf> {
        self.names.get(&file)
    }

    /// Takes where a file lies, in place of what was known.
    pub(super) fn place_it(&mut self, file: FileKey, disk: Disk, extents: &[FileExtent]) {
        for place in self.places.remove(&file).unwrap_or_default() {
            if self.parts.get(&place).is_some_and(|part| part.file == file) {
                self.parts.remove(&place);
            }
        }
        let places = extents.iter().map(|extent| {
            let place = (disk.device, disk.begin.saturating_add(extent.physical));
            self.parts.insert(place, Part { len: extent.len, file, logical: extent.logical });
            place
        });
        let places = places.collect();
        self.places.insert(file, places);
    }

    /// The file that a byte of a disk is of, and where in it.
    pub(super) fn at(&self, disk: DeviceNumber, place: u64) -> Option<(FileKey, u64)> {
        let (&(_, begin), part) = self.parts.range((disk, 0)..=(disk, place)).next_back()?;
        let within = place - begin;
        (within < part.len).then(|| (part.file, part.logical.saturating_add(within)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_of_the_file_that_lies_there_now() {
        let disk =
            Disk { device: DeviceNumber { major: 8, minor: 0 }, begin: 1 << 20, len: 1 << 30 };
        let key = |inode| FileKey { device: DeviceNumber { major: 8, minor: 1 }, inode };
        let mut files = Files::default();
        let extent = |logical, physical, len| FileExtent { logical, physical, len };
        files.place_it(key(7), disk, &[extent(0, 8192, 4096), extent(4096, 65_536, 8192)]);
        let at = |files: &Files, place| files.at(disk.device, place);
        assert_eq!(at(&files, (1 << 20) + 8192), Some((key(7), 0)));
        assert_eq!(at(&files, (1 << 20) + 65_536 + 5000), Some((key(7), 4096 + 5000)));
        assert_eq!(at(&files, (1 << 20) + 12_288), None);
        assert_eq!(at(&files, 0), None);
        files.place_it(key(8), disk, &[extent(0, 8192, 4096)]);
        assert_eq!(at(&files, (1 << 20) + 8192), Some((key(8), 0)), "a file took its place");
        files.place_it(key(7), disk, &[]);
        assert_eq!(at(&files, (1 << 20) + 8192), Some((key(8), 0)));
        assert_eq!(at(&files, (1 << 20) + 65_536), None);
        files.name_it(key(7), PathBuf::from("/a"));
        files.name_it(key(7), PathBuf::from("/b"));
        assert_eq!(files.name(key(7)), Some(&PathBuf::from("/a")));
    }
}
