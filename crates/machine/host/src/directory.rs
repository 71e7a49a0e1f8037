//! A flat directory of small files that appear whole or not at all: the index cache.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FlockOperation, OFlags, fadvise, flock};
use rustix::io::Errno;
use units::{Clock as _, NANOS_PER_SECOND, Sleep as _};

use crate::draft::{draft_file, is_draft};
use crate::{Error, SystemClock};

/// Who has a folder to itself makes files durable, which a busy disk takes a while for.
const PATIENCE_NS: i64 = 60 * NANOS_PER_SECOND;
const AGAIN_NS: i64 = 20_000_000;

/// A folder or file that no other process has, as far as they ask: for what is counted and then
/// added to.
#[derive(Debug)]
pub struct Locked(Option<fs::File>);

impl Locked {
    /// As [`Self::take`], without waiting: `None` where another process has it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn take_at_once(path: &Path) -> Result<Option<Self>, Error> {
        let file = fs::File::open(path).map_err(|error| Error::path("open", path, error))?;
        Ok(lock(&file).map(|is_locked| Self(is_locked.then_some(file))))
    }

    /// Waits until no other process has it, up to a minute. Where a file system has no such locks,
    /// or does not lock folders (NFS), nobody waits.
    ///
    /// # Errors
    /// When it cannot be opened, or another process has it for longer.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let file = fs::File::open(path).map_err(|error| Error::path("open", path, error))?;
        let until_ns = SystemClock.boottime_ns().saturating_add(PATIENCE_NS);
        loop {
            if let Some(is_locked) = lock(&file) {
                return Ok(Self(is_locked.then_some(file)));
            }
            let now_ns = SystemClock.boottime_ns();
            if now_ns >= until_ns {
                let why = "another process has been adding to it for a minute";
                return Err(Error::UnsafeFolder { path: path.to_path_buf(), why });
            }
            SystemClock.sleep_until(now_ns.saturating_add(AGAIN_NS));
        }
    }
}

/// Whether the lock was got, or there are none; `None` where another process has it.
fn lock(file: &fs::File) -> Option<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => None,
        Err(_) => Some(false),
    }
}

impl Drop for Locked {
    /// A child that was just started has the descriptor until it becomes another program, and the
    /// lock with it, flock(2).
    fn drop(&mut self) {
        self.0.take().map(|folder| flock(folder, FlockOperation::Unlock));
    }
}

/// A directory whose files are replaced atomically. Names that begin with a dot are its own.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens the directory, making it and its parents if need be; only its owner may look inside
    /// what is made. One that every user may write to is refused: its files are read back, and
    /// could come from any user.
    pub fn open(path: &Path) -> Result<Self, Error> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| Error::path("make the directory", path, error))?;
        let found = fs::metadata(path).map_err(|error| Error::path("examine", path, error))?;
        if found.mode() & 0o002 != 0 {
            return Err(Error::UnsafeFolder {
                path: path.to_path_buf(),
                why: "every user may write to it",
            });
        }
        Ok(Self { path: path.to_path_buf() })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what processes that were killed had begun to write, and what others are writing.
    pub fn remove_drafts(&self) -> Result<(), Error> {
        let fail = |error| Error::path("tidy up", &self.path, error);
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if is_draft(&entry.file_name()) {
                match fs::remove_file(entry.path()) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(error)),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The content of a file, or `None` if there is none of that name.
    ///
    /// # Panics
    /// If `name` is no plain file name, here and below.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.entry(name);
        match read_whole(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::path("read", &path, error)),
        }
    }

    /// Opens a file to read parts of it, or `None` if there is none of that name.
    pub fn open_file(&self, name: &str) -> Result<Option<OpenFile>, Error> {
        let path = self.entry(name);
        let fail = |error| Error::path("read", &path, error);
        let file = match open_plain(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fail)?,
        };
        let size_bytes = file.metadata().map_err(fail)?.len();
        Ok(Some(OpenFile { path, file, size_bytes }))
    }

    /// Asks for the last `bytes` of the last `count` files, in the order of names, to be in memory
    /// soon. It is no error when that cannot be done.
    pub fn read_ahead(&self, count: usize, bytes: u64) {
        for name in self.list().unwrap_or_default().iter().rev().take(count) {
            let Ok(Some(OpenFile { file, size_bytes, .. })) = self.open_file(name) else {
                continue;
            };
            let from = size_bytes.saturating_sub(bytes);
            fadvise(&file, from, None, Advice::WillNeed).unwrap_or_default();
        }
    }

    /// Writes a file so that readers see its old or its new content and nothing between. Until
    /// [`Self::sync`] a crash may leave it damaged.
    pub fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_with(name, &mut |file| file.write_all(bytes))
    }

    /// As [`Self::write_atomic`], of a file that comes in parts: `part` appends the next one to
    /// what it is given, and says whether another follows.
    pub fn write_parts(
        &self,
        name: &str,
        part: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.write_with(name, &mut |file| {
            loop {
                bytes.clear();
                let follows = part(&mut bytes);
                file.write_all(&bytes)?;
                if !follows {
                    return Ok(());
                }
            }
        })
    }

    fn write_with(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut fs::File) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let path = self.entry(name);
        let fail = |error| Error::path("write", &path, error);
        let (draft, mut file) = draft_file(&path).map_err(fail)?;
        let written = write(&mut file).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|error| {
            // The cause is worth more than a second error.
            drop(fs::remove_file(&draft));
            fail(error)
        })
    }

    /// Makes a file durable, its name too: a rename is durable only with its directory.
    pub fn sync(&self, name: &str) -> Result<(), Error> {
        let path = self.entry(name);
        let sync = |path: &Path| fs::OpenOptions::new().read(true).open(path)?.sync_all();
        sync(&path)
            .and_then(|()| sync(&self.path))
            .map_err(|error| Error::path("sync", &path, error))
    }

    /// The names of all files, sorted.
    pub fn list(&self) -> Result<Vec<String>, Error> {
        let fail = |error| Error::path("list", &self.path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_file = entry.file_type().map_err(fail)?.is_file();
            if let (true, Ok(name)) = (is_file, entry.file_name().into_string())
                && !name.starts_with('.')
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a file; one that is not there is no error.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.entry(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::path("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn entry(&self, name: &str) -> PathBuf {
        assert!(
            !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']),
            "{name:?} is a plain file name"
        );
        self.path.join(name)
    }
}

/// A file of a directory, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    file: fs::File,
    size_bytes: u64,
}

impl OpenFile {
    /// Its size when it was opened. Files are replaced, never changed.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reads exactly `into`.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let read = self.file.read_exact_at(into, offset);
        read.map_err(|error| Error::path("read", &self.path, error))
    }
}

/// Asks for the whole file at once before it reads: a cold file then comes at the disk's speed, not
/// window by window.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = open_plain(path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    // Advice only: a file system that does not take it reads as ever.
    fadvise(&file, 0, None, Advice::WillNeed).unwrap_or_default();
    let mut bytes = Vec::with_capacity(size);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A link has no place here: it would lead elsewhere.
fn open_plain(path: &Path) -> std::io::Result<fs::File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Where caches go: `/var/cache/wirespool` for root, else by the XDG Base Directory Specification,
/// which says to ignore relative paths.
pub fn default_cache_directory() -> Result<PathBuf, Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/cache/wirespool"));
    }
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("wirespool"))
        .ok_or(Error::NoCacheDirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_listed_read_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::open(&parent.path().join("a/b")).unwrap();
        assert_eq!(directory.list().unwrap(), Vec::<String>::new());
        assert_eq!(directory.read("x").unwrap(), None);
        directory.write_atomic("x", b"old").unwrap();
        directory.write_atomic("x", b"new").unwrap();
        directory.sync("x").unwrap();
        directory.write_atomic("a", b"").unwrap();
        fs::create_dir(directory.path().join("folder")).unwrap();
        fs::write(directory.path().join(".draft"), b"").unwrap();
        assert_eq!(directory.list().unwrap(), ["a", "x"]);
        assert_eq!(directory.read("x").unwrap().as_deref(), Some(b"new".as_slice()));
        directory.read_ahead(9, 2);
        directory.remove("x").unwrap();
        directory.remove("x").unwrap();
        assert_eq!(directory.list().unwrap(), ["a"]);
        directory.read_ahead(9, 2);
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_draft() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::open(parent.path()).unwrap();
        fs::create_dir_all(directory.path().join("x/inner")).unwrap();
        assert!(directory.write_atomic("x", b"new").is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_everybody_may_write_to_is_refused_and_links_in_it_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::open(parent.path()).unwrap();
        fs::write(parent.path().join("theirs"), b"theirs").unwrap();
        symlink(parent.path().join("theirs"), parent.path().join("x")).unwrap();
        assert!(directory.read("x").is_err() && directory.open_file("x").is_err());
        directory.write_atomic("x", b"ours").unwrap();
        assert_eq!(directory.read("theirs").unwrap().as_deref(), Some(b"theirs".as_slice()));
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let error = Directory::open(parent.path()).unwrap_err().to_string();
        assert!(error.ends_with("is not used: every user may write to it"), "{error}");
    }

    #[test]
    #[should_panic(expected = "is a plain file name")]
    fn names_do_not_leave_the_directory() {
        let parent = tempfile::tempdir().unwrap();
        drop(Directory::open(parent.path()).unwrap().read("../x"));
    }
}
