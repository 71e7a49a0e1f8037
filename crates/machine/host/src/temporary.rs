//! A directory that goes away again.

use core::time::Duration;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;

use crate::{Error, random_bytes};

/// A directory for this process's user only, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
    /// While it is locked, a process has it: the kernel lets go of what was killed.
    lock: Option<OwnedFd>,
}

impl TemporaryDirectory {
    /// Makes one where the system wants temporary files (`TMPDIR`).
    pub fn new(prefix: &str) -> Result<Self, Error> {
        Self::within(&std::env::temp_dir(), prefix)
    }

    /// Makes one in a folder. Those of this prefix that killed processes of this user left there
    /// are removed.
    pub fn within(folder: &Path, prefix: &str) -> Result<Self, Error> {
        remove_left(folder, prefix);
        let number = u64::from_le_bytes(random_bytes()?);
        let mut made = Self::at(folder.join(format!("{prefix}{number:016x}")))?;
        made.lock = lock(&made.path);
        Ok(made)
    }

    /// Makes one with this name.
    pub fn at(path: PathBuf) -> Result<Self, Error> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Error::path("make the directory", &path, error))?;
        Ok(Self { path, lock: None })
    }

    /// One that a killed process of this user left: it goes with all that is in it when this is
    /// dropped. Folders of others stay, and what a link leads to.
    pub fn left_at(path: PathBuf) -> Option<Self> {
        let found = fs::symlink_metadata(&path).ok()?;
        let is_own = found.uid() == geteuid().as_raw();
        // Only then is there one to be dropped: it takes the folder along.
        (found.is_dir() && is_own).then(|| Self { path, lock: None })
    }

    /// Notes in it which file it goes with: when this process is killed, the next one knows both
    /// for what they are.
    ///
    /// # Errors
    /// When it cannot be written, or the file system does not say when a file was made.
    pub fn note_companion(&self, file: &Path) -> Result<(), Error> {
        let identity = identity_of(file).map_err(|error| Error::path("examine", file, error))?;
        let note = self.path.join(COMPANION);
        fs::write(&note, identity).map_err(|error| Error::path("write", &note, error))
    }

    /// Whether this user's directory at `path` goes with this very file: not with one that has got
    /// its name since.
    pub fn is_companion(path: &Path, file: &Path) -> bool {
        let is_own = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|found| found.uid() == geteuid().as_raw())
        };
        let noted = fs::read_to_string(path.join(COMPANION));
        let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        is_folder
            && is_own(path)
            && is_own(file)
            && noted.is_ok_and(|noted| identity_of(file).is_ok_and(|identity| identity == noted))
    }

    /// Path of the temporary directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// One that is as young may not be locked so far.
const YOUNG: Duration = Duration::from_mins(1);

/// Takes a directory for this process; `None` where another one has it.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

/// Removes what processes of this user left that were killed. What cannot be removed stays.
fn remove_left(folder: &Path, prefix: &str) {
    let is_number = |rest: &str| rest.len() == 16 && rest.bytes().all(|it| it.is_ascii_hexdigit());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours =
            name.to_str().and_then(|name| name.strip_prefix(prefix)).is_some_and(is_number);
        let is_old = |found: &fs::Metadata| {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok());
            age.is_some_and(|age| age > YOUNG)
        };
        let is_old = is_ours && entry.metadata().is_ok_and(|found| is_old(&found));
        if is_old && let Some(_lock) = lock(&entry.path()) {
            drop(TemporaryDirectory::left_at(entry.path()));
        }
    }
}

/// What a directory notes of the file that it goes with.
const COMPANION: &str = ".goes-with";

/// Numbers of inodes are used again; with the time when it was made it is the same file.
fn identity_of(file: &Path) -> std::io::Result<String> {
    let found = fs::symlink_metadata(file)?;
    let made = found.created()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{} {} {}", found.dev(), found.ino(), made.as_nanos()))
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's place for such things.
        drop(fs::remove_dir_all(&self.path));
        drop(self.lock.take());
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

    use super::*;

    #[test]
    fn it_goes_away_with_everything_in_it() {
        let directory = TemporaryDirectory::new("wirespool-test-").unwrap();
        let path = directory.path().to_path_buf();
        fs::write(path.join("file"), b"x").unwrap();
        assert_eq!(fs::read(path.join("file")).unwrap(), b"x");
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_anybody_elses_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (left, link) = (folder.path().join("left"), folder.path().join("link"));
        fs::create_dir_all(left.join("in")).unwrap();
        std::os::unix::fs::symlink(&left, &link).unwrap();
        assert!(TemporaryDirectory::left_at(link).is_none());
        if geteuid().is_root() {
            std::os::unix::fs::chown(&left, Some(12_345), None).unwrap();
            assert!(TemporaryDirectory::left_at(left.clone()).is_none());
            std::os::unix::fs::chown(&left, Some(0), None).unwrap();
        }
        drop(TemporaryDirectory::left_at(left.clone()));
        assert!(!left.exists());
    }

    #[test]
    fn the_next_one_removes_what_nobody_has_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let made = || TemporaryDirectory::within(folder.path(), "wirespool-test-").unwrap();
        let age = |path: &Path| {
            let before = Timespec { tv_sec: 0, tv_nsec: 0 };
            let times = Timestamps { last_access: before, last_modification: before };
            utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
        };
        let held = made();
        let at = |name: &str| folder.path().join(format!("wirespool-test-{name}"));
        let (left, other, young) = (at(&"0".repeat(16)), at("notes"), at(&"1".repeat(16)));
        for path in [&left, &other, &young] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("packets"), b"x").unwrap();
        }
        for path in [held.path(), &left, &other] {
            age(path);
        }
        let next = made();
        assert!(held.path().exists() && next.path().exists(), "they are in use");
        assert!(other.exists() && young.exists(), "nobody knows whose they are");
        assert!(!left.exists());
    }

    #[test]
    fn a_directory_goes_with_the_file_that_it_noted_and_with_no_later_one_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (file, of_others) = (folder.path().join("file"), folder.path().join("others"));
        fs::write(&file, b"x").unwrap();
        let directory = TemporaryDirectory::at(folder.path().join("beside")).unwrap();
        let is_companion = |file: &Path| TemporaryDirectory::is_companion(directory.path(), file);
        assert!(!is_companion(&file), "nothing is noted");
        if let Err(error) = directory.note_companion(&file) {
            println!("not run: {error}");
            return;
        }
        assert!(is_companion(&file));
        fs::write(&of_others, b"x").unwrap();
        assert!(!is_companion(&of_others));
        fs::remove_file(&file).unwrap();
        fs::write(&file, b"x").unwrap();
        assert!(!is_companion(&file), "it has the name, and perhaps the inode");
    }
}
