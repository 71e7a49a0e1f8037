//! A file that only grows, that one process at a time writes, and whose bytes are on the disk when
//! they count.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::Error;
use crate::draft::folder_of;

/// An open ledger: locked, and written at its end.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    size_bytes: u64,
    /// It was not there before.
    is_begun: bool,
}

/// Bytes that could not be made durable.
#[derive(Debug)]
pub struct NotAppended {
    /// The system's reason.
    pub source: io::Error,
    /// Nothing of them is in the file.
    pub is_undone: bool,
}

impl Ledger {
    /// Opens a ledger, or begins one for its owner's eyes only.
    ///
    /// # Errors
    /// When another process has it, when others could change it, or it is no file for that.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::path("open", path, error);
        let refuse = |why| Err(Error::UnsafeFile { path: path.to_path_buf(), why });
        crate::spared::check_grown(path)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        // A pipe without a reader is no reason to wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
        let (file, is_begun) = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.open(path).map_err(fail)?, false)
            }
            begun => (begun.map_err(fail)?, true),
        };
        let found = file.metadata().map_err(fail)?;
        if !found.is_file() {
            return refuse("it is no file");
        }
        let owner = found.uid();
        if owner != 0 && owner != geteuid().as_raw() {
            return refuse("it belongs to another user, who could change it");
        }
        if found.mode() & 0o022 != 0 {
            return refuse("others may change it: chmod go-w");
        }
        lock(&file, path)?;
        // What another process has written meanwhile counts.
        let size_bytes = file.metadata().map_err(fail)?.len();
        sync_folder(path).map_err(fail)?;
        Ok(Self { path: path.to_path_buf(), file, size_bytes, is_begun })
    }

    /// Checks that it begins with a text, as all of its kind do, or is empty: nothing is to be
    /// written behind another file.
    ///
    /// # Errors
    /// When it does not, or cannot be read.
    pub fn check_begins(&self, text: &str) -> Result<(), Error> {
        let mut found = vec![0; text.len()];
        let read = self.file.read_at(&mut found, 0);
        let read = read.map_err(|error| Error::path("read", &self.path, error))?;
        if found.get(..read) == text.as_bytes().get(..read) {
            return Ok(());
        }
        let why = "it has something else in it: name another file";
        Err(Error::UnsafeFile { path: self.path.clone(), why })
    }

    /// Whether what it ends with is a line without its line feed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_torn(&self) -> Result<bool, Error> {
        let Some(last) = self.size_bytes.checked_sub(1) else { return Ok(false) };
        let mut end = [0];
        let read = self.file.read_exact_at(&mut end, last);
        read.map_err(|error| Error::path("read", &self.path, error))?;
        Ok(end != *b"\n")
    }

    /// Lets it go where nothing came of what it was opened for: one that was begun for that, and is
    /// empty still, is removed.
    pub fn abandon(self) {
        if self.is_begun && self.size_bytes == 0 && self.is_in_place() {
            // The cause is worth more than a second error.
            std::fs::remove_file(&self.path).unwrap_or_default();
        }
    }

    /// Bytes that it has.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether its path still names it: it may have been renamed, or removed.
    pub fn is_in_place(&self) -> bool {
        let named = std::fs::symlink_metadata(&self.path);
        let own = self.file.metadata();
        let number = |found: std::fs::Metadata| (found.dev(), found.ino());
        named.ok().map(number) == own.ok().map(number)
    }

    /// Writes bytes behind its end and waits until the disk has them. What is written of them when
    /// that fails is taken back, where the file system permits it.
    ///
    /// # Errors
    /// When it is not done.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), NotAppended> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        let Err(source) = written else {
            self.size_bytes += u64::try_from(bytes.len()).unwrap_or(0);
            return Ok(());
        };
        let taken_back = self.file.set_len(self.size_bytes).and_then(|()| self.file.sync_data());
        let size = self.file.metadata().map(|found| found.len());
        let is_undone = taken_back.is_ok() && size.is_ok_and(|size| size == self.size_bytes);
        Err(NotAppended { source, is_undone })
    }

    /// Gives it another name, which is free, and stays open.
    ///
    /// # Errors
    /// When the name is taken, or the folder may not be changed.
    pub fn rename(&self, name: &Path) -> Result<(), Error> {
        let fail = |error: io::Error| Error::path("rename", &self.path, error);
        match renameat_with(CWD, &self.path, CWD, name, RenameFlags::NOREPLACE) {
            // Not every file system knows the flag.
            Err(Errno::INVAL) if !name.exists() => {
                std::fs::rename(&self.path, name).map_err(fail)?;
            }
            renamed => renamed.map_err(|errno| fail(errno.into()))?,
        }
        sync_folder(name).map_err(fail)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        unlock(&self.file);
    }
}

/// Whether another process writes this ledger.
pub fn is_ledger_open(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let is_open = lock(&file, path).is_err();
    unlock(&file);
    is_open
}

/// Removes a file, or a link to one, that is not needed any more.
///
/// # Errors
/// When its folder may not be changed.
pub fn remove_file(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(|error| Error::path("remove", path, error))
}

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(Error::UnsafeFile { path: path.to_path_buf(), why: "another process writes it" })
        }
        Err(errno) => Err(Error::path("lock", path, errno)),
    }
}

/// Closing the file is not enough: a child that another thread is starting has a copy of the
/// descriptor until it becomes another program, and the lock with it, flock(2).
fn unlock(file: &File) {
    // Of a lock that this file does not have, and where there are none, nothing is to be done.
    let _unlocked = flock(file, FlockOperation::Unlock);
}

/// So that a name is there after a power cut, too.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn one_process_writes_it_and_others_cannot_change_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(b"one\n").unwrap();
        // A lock is of an open file, so this is as good as another process.
        let error = Ledger::open(&path).unwrap_err().to_string();
        assert!(error.ends_with("another process writes it"), "{error}");
        assert!(is_ledger_open(&path));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // What a child that is being started has of it.
        let copy = ledger.file.try_clone().unwrap();
        drop(ledger);
        assert!(!is_ledger_open(&path));
        drop(copy);
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(b"two\n").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), ledger.size_bytes()), (b"one\ntwo\n".into(), 8));
        drop(ledger);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
        assert!(Ledger::open(&path).is_err());
        assert!(Ledger::open(folder.path()).is_err());
    }

    #[test]
    fn a_renamed_one_is_noticed_and_no_name_is_taken_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("ledger"), folder.path().join("other"));
        let ledger = Ledger::open(&path).unwrap();
        assert!(ledger.is_in_place());
        std::fs::write(&other, "").unwrap();
        assert!(ledger.rename(&other).is_err());
        std::fs::remove_file(&other).unwrap();
        ledger.rename(&other).unwrap();
        assert!(!ledger.is_in_place() && other.exists());
        remove_file(&other).unwrap();
        assert!(!other.exists());
    }
}
