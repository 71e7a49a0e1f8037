//! Files of which only their owner may know: keys, tokens, accounts.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};
use units::{Clock as _, NANOS_PER_SECOND, Sleep as _};

use crate::draft::{draft_file, folder_of};
use crate::input::read_whole;
use crate::ledger::sync_folder;
use crate::spared::keep_input;
use crate::user::calling_user;
use crate::{Error, SystemClock};

/// More than any key has.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// Who changes a file has it for milliseconds; a disk that hangs has it for longer.
const PATIENCE_NS: i64 = 5 * NANOS_PER_SECOND;
const AGAIN_NS: i64 = 20_000_000;

/// Reads a key. Of a file that others may read or change it is refused; pipes are as good as who
/// made them.
pub fn read_key(path: &Path) -> Result<String, Error> {
    let not_text = |_| Error::path("read", path, io::Error::from(io::ErrorKind::InvalidData));
    String::from_utf8(read_key_bytes(path)?).map_err(not_text)
}

/// The same of one that need not be text. From then on a crash of this process leaves no core file,
/// which would have the key in it.
pub fn read_key_bytes(path: &Path) -> Result<Vec<u8>, Error> {
    leave_no_core();
    let fail = |error| Error::path("read", path, error);
    let file = File::open(path).map_err(fail)?;
    keep_input(&file);
    check_owner(&file, path)?;
    check_mode(&file, path)?;
    read_whole(&file, path, KEY_BYTES_MAX)
}

/// What a crash hands to a program (`core(5)`) is kept back as far as that honours the limit; root
/// says besides that there is nothing to be had. Of others the kernel would keep `/proc/self`.
fn leave_no_core() {
    // Where it is refused there is as much protection as before.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).unwrap_or_default();
    if geteuid().is_root() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or_default();
    }
}

/// The same of a file that may have so many bytes, and of a longer one nothing.
pub fn read_private(path: &Path, bytes_max: u64) -> Result<String, Error> {
    let file = File::open(path).map_err(|error| Error::path("read", path, error))?;
    check_owner(&file, path)?;
    read(&file, path, bytes_max)
}

/// Changes such a file, or makes it: who else changes it waits, and who reads it sees all of the
/// old text or all of the new one, which is on the disk when this returns. `change` is given the
/// text, empty where there is no file; what it refuses leaves everything as it was. The file stays
/// its owner's, also where root changes it.
///
/// # Errors
/// When it cannot be read or written, others may read it, or `change` refuses.
pub fn change_private<E: From<Error>>(
    path: &Path,
    bytes_max: u64,
    change: &mut dyn FnMut(&str) -> Result<String, E>,
) -> Result<(), E> {
    // A link to the file stays one.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let held = Held::take(&path)?;
    // Root may change the files of others without that.
    let is_own = if geteuid().is_root() { Ok(()) } else { check_owner(&held.file, &path) };
    let old = is_own.and_then(|()| read(&held.file, &path, bytes_max));
    let changed = old.map_err(E::from).and_then(|old| change(&old));
    let written = changed.and_then(|new| Ok(held.replace(&path, &new)?));
    if written.is_err() && held.is_new {
        // Nobody had it; no caller is left to take a second error.
        drop(std::fs::remove_file(&path));
    }
    written
}

/// Whether this process may put another file in the place of one, as far as can be said before.
pub fn may_replace(path: &Path) -> bool {
    access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// A file that nobody else changes.
struct Held {
    file: File,
    is_new: bool,
}

impl Held {
    fn take(path: &Path) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::path("open", path, error);
        let until_ns = SystemClock.boottime_ns().saturating_add(PATIENCE_NS);
        loop {
            let is_new = !path.exists();
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(path).map_err(fail)?;
            let is_held = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            // Who had it before may have put another one in its place.
            if is_held && is_at(&file, path) {
                return Ok(Self { file, is_new });
            }
            let now_ns = SystemClock.boottime_ns();
            if now_ns >= until_ns {
                let why = "another process changes it";
                return Err(Error::UnsafeFile { path: path.to_path_buf(), why });
            }
            if !is_held {
                SystemClock.sleep_until(now_ns.saturating_add(AGAIN_NS));
            }
        }
    }

    fn replace(&self, path: &Path, text: &str) -> Result<(), Error> {
        let fail = |error: io::Error| Error::path("write", path, error);
        let (draft, file) = draft_file(path).map_err(fail)?;
        let moved = self.write(&file, text).and_then(|()| std::fs::rename(&draft, path));
        if moved.is_err() {
            // The cause is worth more than a second error.
            drop(std::fs::remove_file(&draft));
        }
        moved.and_then(|()| sync_folder(path)).map_err(fail)
    }

    fn write(&self, mut file: &File, text: &str) -> io::Result<()> {
        let (owner, own) = (self.file.metadata()?, file.metadata()?);
        if (own.uid(), own.gid()) != (owner.uid(), owner.gid()) {
            fchown(file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    let (own, named) = (file.metadata().ok(), std::fs::metadata(path).ok());
    own.is_some() && own.map(number) == named.map(number)
}

fn read(file: &File, path: &Path, bytes_max: u64) -> Result<String, Error> {
    check_mode(file, path)?;
    let mut text = String::new();
    let mut part = file.take(bytes_max.saturating_add(1));
    let length = part.read_to_string(&mut text);
    let length = length.map_err(|error| Error::path("read", path, error))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > bytes_max {
        return Err(Error::UnsafeFile { path: path.to_path_buf(), why: "it is too long" });
    }
    Ok(text)
}

fn check_owner(file: &File, path: &Path) -> Result<(), Error> {
    let found = file.metadata().map_err(|error| Error::path("read", path, error))?;
    let owner = found.uid();
    let is_ours = owner == 0 || owner == geteuid().as_raw() || Some(owner) == calling_user();
    if found.is_file() && !is_ours {
        return Err(Error::ForeignKey { path: path.to_path_buf() });
    }
    Ok(())
}

fn check_mode(file: &File, path: &Path) -> Result<(), Error> {
    let found = file.metadata().map_err(|error| Error::path("read", path, error))?;
    let mode = found.mode() & 0o777;
    if found.is_file() && mode & 0o066 != 0 {
        return Err(Error::ReadableKey { path: path.to_path_buf(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn a_key_that_others_may_read_or_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, "secret").unwrap();
        for (mode, is_kept) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)]
            .into_iter()
            .chain([(0o620, false), (0o602, false), (0o700, true)])
        {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read_key(&path);
            assert_eq!(read.is_ok(), is_kept, "{mode:o}");
            if let Err(error) = read {
                let error = error.to_string();
                assert!(error.contains("others may read") && !error.contains('\n'), "{error}");
            }
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        if geteuid().is_root() {
            chown(&path, Some(12_345), None).unwrap();
            assert!(matches!(read_key(&path), Err(Error::ForeignKey { .. })));
        } else {
            println!("not run: needs root to give a key to another user");
        }
    }

    #[test]
    fn many_change_a_file_one_after_the_other_and_none_sees_half_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let add = &mut |old: &str| Ok::<_, Error>(format!("{old}line\n"));
                        change_private(&path, 1 << 10, add).unwrap();
                    }
                });
            }
            for _ in 0..100 {
                let seen = read_private(&path, 1 << 10).unwrap_or_default();
                assert!(seen.is_empty() || seen.ends_with("line\n"), "{seen:?}");
            }
        });
        assert_eq!(read_private(&path, 1 << 10).unwrap(), "line\n".repeat(80));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode, std::fs::read_dir(folder.path()).unwrap().count()), (0o600, 1));
    }

    #[test]
    fn what_is_refused_leaves_the_file_as_it_was_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people");
        let refuse = &mut |_: &str| Err(Error::UnsafeFile { path: "x".into(), why: "no" });
        assert!(change_private(&path, 10, refuse).is_err() && !path.exists());
        change_private(&path, 10, &mut |_| Ok::<_, Error>("old".to_owned())).unwrap();
        assert!(change_private(&path, 10, refuse).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert!(change_private(&path, 2, &mut |_| Ok::<_, Error>(String::new())).is_err());
        set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(change_private(&path, 10, &mut |_| Ok::<_, Error>(String::new())).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert!(may_replace(&path) && !may_replace(&folder.path().join("absent/people")));
    }

    #[test]
    fn a_file_stays_its_owners_where_root_changes_it() {
        if !geteuid().is_root() {
            return println!("not run: needs root to give a file to another user");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people");
        write(&path, "old").unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(12_345), Some(54_321)).unwrap();
        change_private(&path, 10, &mut |_| Ok::<_, Error>("new".to_owned())).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (12_345, 54_321, 0o600));
    }
}
