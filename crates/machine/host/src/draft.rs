//! Files without a name, and files and folders under hidden names beside their place, until they
//! are whole.
//!
//! The name has 64 random bits, and whatever has it already is refused, a link above all: another
//! process that may write to the folder cannot redirect the output.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use crate::random_bytes;

/// So much of the name of the place is in that of the draft: a name has at most 255 bytes.
const NAME_BYTES_MAX: usize = 200;
/// A file has the random name already: not twice in a row.
const ATTEMPTS: usize = 4;

/// An empty file beside a place, for the owner's eyes only, and its name. A path that ends in `..`
/// has none.
pub(crate) fn draft_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    attempts(path, &|draft| options.open(draft))
}

/// The folder that a path lies in, as it is written.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// An empty file in the folder of a place, without any name: nothing of it stays when this process
/// is killed (`O_TMPFILE` of open(2)). An error where the file system has no such files, or they
/// could not be given a name later.
pub(crate) fn nameless_file(path: &Path) -> io::Result<File> {
    path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::TMPFILE.bits().cast_signed());
    let file = options.open(folder_of(path))?;
    std::fs::symlink_metadata(way_to(&file))?;
    Ok(file)
}

/// Gives a file without a name one that is free.
pub(crate) fn link(file: &File, path: &Path) -> io::Result<()> {
    linkat(CWD, way_to(file), CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
}

/// Gives it the name of a draft, from which it can be moved over another file.
pub(crate) fn link_as_draft(file: &File, path: &Path) -> io::Result<PathBuf> {
    attempts(path, &|draft| link(file, draft)).map(|(draft, ())| draft)
}

/// Whom the umask lets may read it.
pub(crate) fn make_public(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o666 & !umask()))
}

/// Who is of its group may read it, if the umask lets them.
pub(crate) fn show_to_group(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o640 & !umask()))
}

/// The mask of this process, which there is no other way to read without changing it
/// (`proc_pid_status(5)`); all of others where the kernel does not say.
pub(crate) fn umask() -> u32 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix("Umask:"));
    found.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0o077)
}

/// The path that linkat(2) names for this.
fn way_to(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The same of a folder.
pub(crate) fn draft_folder(path: &Path) -> io::Result<PathBuf> {
    let made = attempts(path, &|draft| DirBuilder::new().mode(0o700).create(draft));
    made.map(|(draft, ())| draft)
}

/// Whether a file of this name is one, of whatever process.
pub(crate) fn is_draft(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(b".draft")
}

fn attempts<T>(path: &Path, make: &dyn Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let mut left = ATTEMPTS;
    loop {
        let draft = beside(path)?;
        left -= 1;
        match make(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && left > 0 => {}
            tried => return tried.map(|it| (draft, it)),
        }
    }
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let random: [u8; 8] = random_bytes().map_err(io::Error::other)?;
    let part = name.as_bytes().iter().copied().take(NAME_BYTES_MAX);
    let number = format!(".{:016x}.draft", u64::from_le_bytes(random));
    let bytes: Vec<u8> = [b'.'].into_iter().chain(part).chain(number.into_bytes()).collect();
    Ok(path.with_file_name(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_drafts_cannot_be_known_before_and_fit_into_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let names: BTreeSet<PathBuf> = (0..50).map(|_| draft_file(&path).unwrap().0).collect();
        assert_eq!(names.len(), 50);
        let draft = draft_folder(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&draft), mode(names.first().unwrap())), (0o700, 0o600));
        assert!(draft_file(&folder.path().join("..")).is_err());
    }

    #[test]
    fn what_has_the_name_of_a_draft_is_never_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("out"), folder.path().join("theirs"));
        std::fs::write(&theirs, "theirs").unwrap();
        let planted = |draft: &Path| {
            std::os::unix::fs::symlink(&theirs, draft).unwrap();
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).open(draft)
        };
        assert!(attempts(&path, &planted).is_err());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    }
}
