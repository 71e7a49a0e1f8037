//! What no output may take the place of, whatever a user agrees to: a member of a volume, an input
//! of this very command, a disk, what the program keeps in folders of its own. By any name: links
//! are followed, and files are recognised by what they hold and by their inode.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use format::superblock::{
    MEMBER_BYTES_MIN, SUPERBLOCK_BYTES, SUPERBLOCK_COPIES, Superblock, SuperblockError, copy_offset,
};
use rustix::fs::OFlags;

use crate::Error;
use crate::control::own_folders;
use crate::directory::default_cache_directory;

/// Refuses a place where an output would destroy something of these.
///
/// # Errors
/// [`Error::Spared`]
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let why = if is_in_own_folder(path) {
        Some("lies in a folder that the program keeps for itself")
    } else {
        // What cannot be looked at is not there, or the attempt to write there says why.
        fs::metadata(path).ok().and_then(|found| why_spared(path, &found))
    };
    why.map_or(Ok(()), |why| Err(Error::Spared { path: path.to_path_buf(), why }))
}

fn why_spared(path: &Path, found: &Metadata) -> Option<&'static str> {
    match found.file_type() {
        kind if kind.is_block_device() => Some("is a disk"),
        kind if !kind.is_file() => None,
        _ if is_open_here(found) => Some("is read by this command"),
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

/// This process has it open: as an input, or as what it was given as its standard input. The
/// drafts that it writes have other names.
fn is_open_here(found: &Metadata) -> bool {
    let Ok(own) = fs::read_dir("/proc/self/fd") else { return false };
    own.flatten().any(|entry| {
        let open = fs::metadata(entry.path());
        open.is_ok_and(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
    })
}

fn is_in_own_folder(path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(parent) = fs::canonicalize(parent.unwrap_or(Path::new("."))) else { return false };
    let own = own_folders().chain(default_cache_directory());
    own.filter_map(|folder: PathBuf| fs::canonicalize(folder).ok())
        .any(|folder| parent.starts_with(folder))
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
        assert!([&file, &link, &symbolic, &other].iter().all(|path| check(path).is_ok()));
        let open = fs::File::open(&link).unwrap();
        for path in [&file, &link, &symbolic] {
            let error = check(path).unwrap_err().to_string();
            assert!(error.ends_with("is read by this command: name another place"), "{error}");
        }
        assert!(check(&other).is_ok());
        drop(open);
        assert!(check(&file).is_ok());
    }
}
