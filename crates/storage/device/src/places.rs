//! Places where a device may lie whose path is not known any more.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::{Error, patiently};

/// Links that name devices for good.
const LINKS: [&str; 2] = ["/dev/disk/by-id", "/dev/disk/by-partuuid"];
/// Files of a folder that are looked at.
const FILES_MAX: usize = 4096;

/// The block devices that have a lasting name, each by one of its names.
pub fn linked_devices() -> Vec<PathBuf> {
    let links = LINKS.iter().flat_map(|folder| entries(Path::new(folder)).unwrap_or_default());
    // devtmpfs and udev's links lie in memory: looking them up waits for no disk.
    let mut devices = BTreeSet::new();
    links.filter(|link| link.canonicalize().is_ok_and(|real| devices.insert(real))).collect()
}

/// The files, block devices and links in a folder, in the order of their names.
///
/// # Errors
/// [`Error::Silent`], or why it cannot be read.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let own = folder.to_path_buf();
    let listed = patiently(folder, move || entries(&own))?;
    listed.map_err(|error| Error::Path {
        operation: "list",
        path: folder.to_path_buf(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    })
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let may_be = |kind: FileType| kind.is_file() || kind.is_block_device() || kind.is_symlink();
    let entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(may_be));
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.path()).take(FILES_MAX).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_files_and_no_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        fs::create_dir(folder.path().join("folder")).unwrap();
        let names = files_in(folder.path()).unwrap();
        assert_eq!(names, ["a", "b"].map(|name| folder.path().join(name)));
        let file = folder.path().join("a");
        assert!(matches!(files_in(&file), Err(Error::Path { operation: "list", .. })));
    }
}
