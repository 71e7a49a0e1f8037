//! What no output may take the place of, whatever a user agrees to: a member of a volume, an input
//! or another output of this very command, a disk, what the program keeps in folders of its own. By
//! any name: links are followed, and files are recognised by what they hold and by their inode.
//!
//! An input is closed when it was read, mostly before an output is begun, and `--force` would then
//! replace it. So whatever opens one on behalf of a user says so here, once, for all verbs.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use format::superblock::{
    MEMBER_BYTES_MIN, SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, SuperblockError, copy_offset,
};
use rustix::fs::OFlags;

use crate::Error;
use crate::control::own_folders;
use crate::directory::default_cache_directory;
use crate::draft::folder_of;

/// Entries of each kind that are kept: 48 bytes each for an inode, a path for the others. A command
/// line has fewer, and a service reads few files for others.
const KNOWN_MAX: usize = 1 << 14;
/// Where the kernel shows devices and itself: a name there is a device's, or leads to one.
const KERNEL_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Memory that has the form of a folder, among the devices.
const MEMORY_FOLDER: &str = "/dev/shm";

/// Device and number, and when it was made: a file that is gone leaves its number to another.
type Inode = (u64, u64, Option<SystemTime>);

/// What this process was told of its command line.
struct Known {
    inputs: BTreeSet<Inode>,
    /// The folder and the name in it; a link in the way to the folder makes no other place.
    outputs: BTreeSet<(PathBuf, OsString)>,
    /// Files that are there and which an output is going to replace.
    replaced: BTreeSet<Inode>,
    folders: BTreeSet<PathBuf>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    inputs: BTreeSet::new(),
    outputs: BTreeSet::new(),
    replaced: BTreeSet::new(),
    folders: BTreeSet::new(),
});

/// Nothing is half written there when a thread ends early.
fn known() -> MutexGuard<'static, Known> {
    stage::lock(&KNOWN)
}

fn insert<T: Ord>(set: &mut BTreeSet<T>, item: T) -> bool {
    set.len() >= KNOWN_MAX || set.insert(item)
}

fn inode(found: &Metadata) -> Inode {
    (found.dev(), found.ino(), found.created().ok())
}

/// No output of this process takes the place of this file. What the kernel makes up while it is
/// read is none that could be lost, and says that it is empty.
pub(crate) fn keep_input(file: &File) {
    if let Ok(found) = file.metadata()
        && found.is_file()
        && found.len() > 0
    {
        insert(&mut known().inputs, inode(&found));
    }
}

/// A folder of files that the program manages: no output goes there. The folder need not exist.
pub fn keep_folder(folder: &Path) {
    insert(&mut known().folders, folder.to_path_buf());
}

/// Refuses a folder for outputs which is one of files that the program manages.
///
/// # Errors
/// [`Error::Spared`]
pub fn check_folder(folder: &Path) -> Result<(), Error> {
    // Whatever would lie in it.
    refused(folder, is_in_own_folder(&folder.join("file")).then_some(OWN_FOLDER))
}

/// Two outputs of one command are two files: the second of a place is refused, before any is
/// written. Devices and pipes take several.
///
/// # Errors
/// [`Error::Spared`]
pub fn claim_output(path: &Path) -> Result<(), Error> {
    let found = fs::metadata(path).ok();
    if found.as_ref().is_some_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let mut known = known();
    let place = real_folder_of(path).zip(path.file_name().map(OsString::from));
    let is_new_place = place.is_none_or(|place| insert(&mut known.outputs, place));
    let is_new_file = found.is_none_or(|found| insert(&mut known.replaced, inode(&found)));
    if is_new_place && is_new_file {
        return Ok(());
    }
    refused(path, Some("is another output of this command, too"))
}

/// Nothing has its place beside it: a device, or a name that the kernel shows. Not a disk, where
/// nothing is put out in any case.
pub fn is_device(path: &Path) -> bool {
    match fs::metadata(path).map(|found| found.file_type()) {
        Ok(kind) if kind.is_block_device() => false,
        Ok(kind) if kind.is_char_device() => true,
        _ => is_among_devices(path),
    }
}

/// Whether something has this name, as far as the system says.
pub fn is_there(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

const OWN_FOLDER: &str = "lies in a folder that the program keeps for itself";

/// Refuses a place where an output would destroy something of these. Who writes by itself asks
/// first.
///
/// # Errors
/// [`Error::Spared`]
pub fn check_output(path: &Path) -> Result<(), Error> {
    if is_in_own_folder(path) {
        return refused(path, Some(OWN_FOLDER));
    }
    refused(path, why_of(path, why_spared))
}

fn refused(path: &Path, why: Option<&'static str>) -> Result<(), Error> {
    why.map_or(Ok(()), |why| Err(Error::Spared { path: path.to_path_buf(), why }))
}

/// What speaks against a place, by its name and what is there.
fn why_of(
    path: &Path,
    of_file: fn(&Path, &Metadata) -> Option<&'static str>,
) -> Option<&'static str> {
    // What cannot be looked at is not there, or the attempt to write there says why.
    match fs::metadata(path) {
        Ok(found) => of_file(path, &found),
        Err(_) => is_among_devices(path).then_some(AMONG_DEVICES),
    }
}

/// Refuses a file to whose end something would be written, and which is a member of a volume or
/// among devices. What this process reads may be the file itself, and the program's own folders
/// may have one.
///
/// # Errors
/// [`Error::Spared`]
pub(crate) fn check_grown(path: &Path) -> Result<(), Error> {
    refused(path, why_of(path, why_never))
}

const AMONG_DEVICES: &str = "lies among devices, where no file has its place";

fn why_spared(path: &Path, found: &Metadata) -> Option<&'static str> {
    let is_read = || found.is_file() && is_open_here(found);
    why_never(path, found).or_else(|| is_read().then_some("is read by this command"))
}

fn why_never(path: &Path, found: &Metadata) -> Option<&'static str> {
    match found.file_type() {
        kind if kind.is_block_device() => Some("is a disk"),
        kind if !kind.is_file() => None,
        // As /dev/stdout is, where that is a file.
        _ if is_among_devices(path) => Some(AMONG_DEVICES),
        _ if is_member(path, found.len()) => Some("is a member of a volume"),
        _ => None,
    }
}

/// A damaged superblock is one, too: one copy is enough, of whatever version.
fn is_member(path: &Path, size_bytes: u64) -> bool {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let (Ok(file), true) = (opened, size_bytes >= MEMBER_BYTES_MIN) else { return false };
    let is_copy = |copy| {
        let mut page = [0; SUPERBLOCK_BYTES];
        let read = file.read_exact_at(&mut page, copy_offset(copy, size_bytes));
        let decoded = Superblock::decode(&page, copy);
        read.is_ok() && !matches!(decoded, Err(SuperblockError::Magic))
    };
    (0..SUPERBLOCK_COPIES).any(is_copy)
}

/// This process has read it, or has it open as what it was given as its standard input. The drafts
/// that it writes have other names.
fn is_open_here(found: &Metadata) -> bool {
    if known().inputs.contains(&inode(found)) {
        return true;
    }
    let Ok(own) = fs::read_dir("/proc/self/fd") else { return false };
    own.flatten().any(|entry| {
        let open = fs::metadata(entry.path());
        open.is_ok_and(|open| inode(&open) == inode(found))
    })
}

/// The folder that a path lies in, links resolved; none where there is no such folder.
fn real_folder_of(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(folder_of(path)).ok()
}

fn is_in_own_folder(path: &Path) -> bool {
    // Two flags can name one folder that is yet to be made.
    if path.parent().is_some_and(|parent| known().folders.contains(parent)) {
        return true;
    }
    let Some(parent) = real_folder_of(path) else { return false };
    let own = own_folders().chain(default_cache_directory());
    let resolved = |folder: PathBuf| fs::canonicalize(folder).ok();
    // One that was named may have folders of the user's in it; its files are flat.
    let is_named = |folder: &PathBuf| resolved(folder.clone()).is_some_and(|it| it == parent);
    own.filter_map(resolved).any(|folder| parent.starts_with(folder))
        || known().folders.iter().any(is_named)
}

fn is_among_devices(path: &Path) -> bool {
    let is_there = |parent: PathBuf| {
        KERNEL_FOLDERS.iter().any(|folder| parent.starts_with(folder))
            && !parent.starts_with(MEMORY_FOLDER)
    };
    real_folder_of(path).is_some_and(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_open_here_is_told_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, symbolic, other] =
            ["file", "link", "symbolic", "other"].map(|name| folder.path().join(name));
        fs::write(&file, "a capture").unwrap();
        fs::write(&other, "another").unwrap();
        fs::hard_link(&file, &link).unwrap();
        std::os::unix::fs::symlink(&file, &symbolic).unwrap();
        assert!([&file, &link, &symbolic, &other].iter().all(|path| check_output(path).is_ok()));
        let open = File::open(&link).unwrap();
        for path in [&file, &link, &symbolic] {
            let error = check_output(path).unwrap_err().to_string();
            assert!(error.ends_with("is read by this command: name another place"), "{error}");
        }
        assert!(check_output(&other).is_ok());
        drop(open);
        assert!(check_output(&file).is_ok());
    }

    #[test]
    fn an_input_stays_one_when_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "a log").unwrap();
        fs::hard_link(&file, &link).unwrap();
        drop(crate::open_input(&file).unwrap());
        assert!(check_output(&file).is_err() && check_output(&link).is_err());
        drop(crate::open_input(Path::new("/proc/self/status")).unwrap());
    }

    #[test]
    fn two_outputs_are_two_places_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("in")).unwrap();
        std::os::unix::fs::symlink(at("in"), at("way")).unwrap();
        claim_output(&at("in/new")).unwrap();
        let error = claim_output(&at("way/../in/./new")).unwrap_err().to_string();
        assert!(error.contains("is another output of this command, too"), "{error}");
        assert!(claim_output(&at("way/new")).is_err());
        claim_output(&at("new")).unwrap();
        fs::write(at("old"), "old").unwrap();
        fs::hard_link(at("old"), at("hard")).unwrap();
        std::os::unix::fs::symlink(at("old"), at("soft")).unwrap();
        claim_output(&at("old")).unwrap();
        assert!(claim_output(&at("hard")).is_err() && claim_output(&at("soft")).is_err());
        (0..2).for_each(|_| claim_output(Path::new("/dev/null")).unwrap());
    }

    #[test]
    fn folders_that_were_named_and_those_of_devices_take_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("index");
        fs::create_dir(&named).unwrap();
        keep_folder(&named);
        assert!(check_output(&named.join("x")).is_err() && check_folder(&named).is_err());
        assert!(check_output(&folder.path().join("x")).is_ok());
        assert!(check_output(Path::new("/dev/null.json")).is_err());
        assert!(check_output(Path::new("/dev/null")).is_ok());
        assert!(is_device(Path::new("/dev/null")) && is_device(Path::new("/dev/stdout")));
        assert!(!is_device(&folder.path().join("x")));
    }
}
