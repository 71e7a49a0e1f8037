//! Regular files that a process has open or mapped, and those below a folder.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::DeviceNumber;
use host::children;
use host::processes::place;

/// A regular file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenFile {
    /// What its file system is on.
    pub device: DeviceNumber,
    /// Inode number on that file system.
    pub inode: u64,
    /// Its name, as the process sees it.
    pub path: PathBuf,
    /// A way to it that leads through other mount namespaces, and to files that were removed.
    pub through: PathBuf,
}

/// Descriptors and mappings of one process that are looked at.
const LINKS_MAX: usize = 4096;

/// What a descriptor of a process leads to now; `None` where it is no file, is closed, or may not
/// be looked at.
fn path_of(process: u32, descriptor: u32) -> Option<PathBuf> {
    link_of(process, descriptor).filter(|path| path.is_absolute())
}

/// The same, with the device that it lies on, or that it is.
pub fn opened(process: u32, descriptor: u32) -> Option<(PathBuf, DeviceNumber)> {
    let path = path_of(process, descriptor)?;
    let found = fs::metadata(place(process).join(format!("fd/{descriptor}"))).ok()?;
    let is_device = found.file_type().is_block_device();
    Some((path, DeviceNumber::of_stat(if is_device { found.rdev() } else { found.dev() })))
}

/// The same of anything: `pipe:[7]`, `socket:[7]` and `anon_inode:[eventfd]` are no paths.
pub fn link_of(process: u32, descriptor: u32) -> Option<PathBuf> {
    fs::read_link(place(process).join(format!("fd/{descriptor}"))).ok()
}

/// Whether a process has a file open so that each write to it is durable when it returns: with
/// `O_DSYNC`, or `O_SYNC`, which has the bits of that (`open(2)`).
pub fn writes_durably(process: u32, path: &Path) -> bool {
    let folder = place(process).join("fd");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten().take(LINKS_MAX);
    let is_it = |number: &str| fs::read_link(folder.join(number)).is_ok_and(|link| link == path);
    let is_durable = |number: &str| {
        let about = fs::read_to_string(place(process).join("fdinfo").join(number)).ok()?;
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = libc::c_int::from_str_radix(flags.trim(), 8).ok()?;
        Some(flags & libc::O_DSYNC != 0)
    };
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|number| is_it(&number) && is_durable(&number) == Some(true))
}

/// What identifies the network namespace of a process: `net:[4026531840]`.
pub fn network_of(process: u32) -> Option<PathBuf> {
    fs::read_link(host::processes::network_of(process)).ok()
}

/// The regular files that a process has open or mapped, each once; none where we may not look.
pub fn open_files(process: u32) -> Vec<OpenFile> {
    let place = place(process);
    let mut known = BTreeSet::new();
    let links = ["fd", "map_files"].into_iter().flat_map(|folder| {
        fs::read_dir(place.join(folder)).into_iter().flatten().flatten().take(LINKS_MAX)
    });
    let found = links.filter_map(|link| {
        let through = link.path();
        let path = fs::read_link(&through).ok()?;
        // Sockets, pipes and the like have names that are no paths.
        if !path.is_absolute() {
            return None;
        }
        let file = found(&through, path)?;
        known.insert((file.device, file.inode)).then_some(file)
    });
    found.collect()
}

/// The regular files below a folder, or the file itself, up to a number; file systems below are not
/// entered, links not followed.
pub fn files_below(path: &Path, most: usize) -> Vec<OpenFile> {
    let mut files = Vec::new();
    let Ok(root) = fs::metadata(path) else { return files };
    let mut folders = vec![path.to_path_buf()];
    if !root.is_dir() {
        files.extend(found(path, path.to_path_buf()));
        return files;
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if files.len() >= most {
                return files;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            if metadata.is_dir() && metadata.dev() == root.dev() {
                folders.push(path);
            } else if metadata.is_file() {
                let device = DeviceNumber::of_stat(metadata.dev());
                let through = path.clone();
                files.push(OpenFile { device, inode: metadata.ino(), path, through });
            }
        }
    }
    files
}

/// Files that are disks: the kernel has them open, and no process.
pub fn backing_files() -> Vec<OpenFile> {
    let disks = children(Path::new("/sys/block")).into_iter();
    let backing = disks.filter_map(|disk| {
        let text = fs::read_to_string(disk.join("loop/backing_file")).ok()?;
        let path = PathBuf::from(text.trim_end_matches('\n'));
        found(&path.clone(), path)
    });
    backing.collect()
}

fn found(through: &Path, path: PathBuf) -> Option<OpenFile> {
    let metadata = fs::metadata(through).ok()?;
    let device = DeviceNumber::of_stat(metadata.dev());
    let through = through.to_path_buf();
    metadata.is_file().then(|| OpenFile { device, inode: metadata.ino(), path, through })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_found_also_after_it_was_removed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = file.as_file().metadata().unwrap();
        let is_it = |found: &OpenFile| found.inode == metadata.ino();
        let of_ours = open_files(std::process::id());
        let found = of_ours.iter().find(|found| is_it(found)).unwrap();
        assert_eq!(found.path, file.path());
        let (kept, path) = file.keep().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(open_files(std::process::id()).iter().any(is_it));
        drop(kept);
    }

    #[test]
    fn a_folder_is_walked_up_to_a_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        for name in ["a", "b", "in/c"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let names = |most| files_below(folder.path(), most).len();
        assert_eq!((names(100), names(2)), (3, 2));
        assert_eq!(files_below(&folder.path().join("a"), 9).len(), 1);
        assert!(files_below(&folder.path().join("absent"), 9).is_empty());
    }
}
