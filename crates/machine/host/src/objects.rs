//! A folder as a store of objects: each is whole under its name or not there, and durable before
//! its name is.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

use crate::{Error, random_bytes};

/// Ends the names of objects that are being written. What a killed process has left of such is no
/// object.
const DRAFT: &str = ".draft";

/// A folder with objects in its folders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectFolder {
    root: PathBuf,
}

/// An object as a listing has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectFile {
    /// Path from the folder, with slashes.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

impl ObjectFolder {
    /// At a place where a folder is or may be made.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Where an object lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Stores an object in place of the one of that name. Returns once both are durable.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write(name, bytes, RenameFlags::empty()).map(|_| ())
    }

    /// The same where there is none of that name; whether there was none.
    pub fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        self.write(name, bytes, RenameFlags::NOREPLACE)
    }

    fn write(&self, name: &str, bytes: &[u8], flags: RenameFlags) -> Result<bool, Error> {
        let path = self.path(name);
        let fail = |error| Error::path("write", &path, error);
        let folder = path.parent().unwrap_or(&self.root);
        DirBuilder::new().recursive(true).mode(0o777).create(folder).map_err(fail)?;
        let random: [u8; 8] = random_bytes()?;
        let draft = folder.join(format!(".{}{DRAFT}", units::hex(&random)));
        let written = write_draft(&draft, bytes).and_then(|()| {
            match renameat_with(CWD, &draft, CWD, &path, flags) {
                Err(error) if error == rustix::io::Errno::EXIST => Ok(false),
                renamed => renamed.map(|()| true).map_err(io::Error::from),
            }
        });
        if !matches!(written, Ok(true)) {
            // The first error says more than that of tidying up.
            drop(fs::remove_file(&draft));
        }
        let is_new = written.map_err(fail)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(is_new)
    }

    /// The bytes of an object; `None` where there is none.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Error::path("read", &path, error)),
        }
    }

    /// Removes an object, if it is there.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if !is_absent(&error) => Err(Error::path("remove", &path, error)),
            _ => Ok(()),
        }
    }

    /// Calls `visit` with the objects below a folder, by name, folder after folder.
    pub fn list(&self, folder: &str, visit: &mut dyn FnMut(ObjectFile)) -> Result<(), Error> {
        let path = self.path(folder);
        let fail = |error| Error::path("list", &path, error);
        let entries = match fs::read_dir(&path) {
            Err(error) if is_absent(&error) => return Ok(()),
            entries => entries.map_err(fail)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(fail)?;
            // What goes away meanwhile is not there.
            let Ok(found) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            names.push((name, found.is_dir(), found.len()));
        }
        names.sort();
        for (name, is_folder, bytes) in names {
            if is_folder {
                self.list(&name, visit)?;
            } else {
                visit(ObjectFile { name, bytes });
            }
        }
        Ok(())
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn write_draft(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let mut file = options.open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(objects: &ObjectFolder, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        objects.list(folder, &mut |object| names.push(object.name)).unwrap();
        names
    }

    #[test]
    fn an_object_is_there_whole_and_replaces_itself() {
        let folder = tempfile::tempdir().unwrap();
        let objects = ObjectFolder::new(&folder.path().join("root"));
        assert!(names(&objects, "").is_empty() && objects.get("a/b").unwrap().is_none());
        objects.put("a/b", b"one").unwrap();
        objects.put("a/b", b"two").unwrap();
        assert!(!objects.put_new("a/b", b"three").unwrap());
        assert!(objects.put_new("a/a", b"").unwrap());
        objects.put("c", b"x").unwrap();
        assert_eq!(objects.get("a/b").unwrap(), Some(b"two".to_vec()));
        assert_eq!(names(&objects, ""), ["a/a", "a/b", "c"]);
        assert_eq!(names(&objects, "a"), ["a/a", "a/b"]);
        let drafts = fs::read_dir(folder.path().join("root/a")).unwrap().count();
        assert_eq!(drafts, 2, "no draft is left");
        objects.delete("a/b").unwrap();
        objects.delete("a/b").unwrap();
        assert_eq!(names(&objects, ""), ["a/a", "c"]);
    }

    #[test]
    fn what_a_killed_process_leaves_is_no_object() {
        let folder = tempfile::tempdir().unwrap();
        let objects = ObjectFolder::new(folder.path());
        write_draft(&folder.path().join(".0011.draft"), b"half").unwrap();
        assert!(names(&objects, "").is_empty());
    }
}
