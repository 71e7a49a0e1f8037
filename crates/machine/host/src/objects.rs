//! A folder as a store of objects: each is whole under its name or not there, and durable before
//! its name is. Its owner and, as far as the umask permits, the group may read them: they name
//! hosts.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::Error;
use crate::draft::{draft_file, show_to_group};
use crate::ledger::sync_folder;
use crate::spared;

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
    ///
    /// # Errors
    /// When it cannot be written, or the folder is one that the program keeps for itself.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write(name, bytes, |draft, path| fs::rename(draft, path).map(|()| true)).map(|_| ())
    }

    /// The same where there is none of that name; whether there was none.
    pub fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        self.write(name, bytes, place_new)
    }

    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        place: fn(&Path, &Path) -> io::Result<bool>,
    ) -> Result<bool, Error> {
        let path = self.path(name);
        let fail = |error| Error::path("write", &path, error);
        spared::check_folder(&self.root)?;
        make_folder(path.parent().unwrap_or(&self.root)).map_err(fail)?;
        // What a killed process leaves of it has a hidden name, and is no object.
        let (draft, file) = draft_file(&path).map_err(fail)?;
        let placed = fill(&file, bytes).and_then(|()| place(&draft, &path));
        if !matches!(placed, Ok(true)) {
            // The first error says more than that of tidying up.
            drop(fs::remove_file(&draft));
        }
        let is_placed = placed.map_err(fail)?;
        sync_folder(&path).map_err(fail)?;
        Ok(is_placed)
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

/// Makes a folder with those above it, each durable before what is in it.
fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folder(above)?;
    }
    match fs::DirBuilder::new().mode(0o750).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if !path.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        // Another process may have made it, and not flushed it so far.
        Ok(()) | Err(_) => sync_folder(path),
    }
}

fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    // Where there are no permissions to be set there are none that keep a reader out.
    drop(show_to_group(file));
    file.write_all(bytes)?;
    file.sync_all()
}

/// Gives a draft its name where nothing has it; whether nothing had.
fn place_new(draft: &Path, path: &Path) -> io::Result<bool> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // NFS does not know the flag.
        Err(Errno::INVAL) => link_new(draft, path),
        Err(error) => Err(error.into()),
    }
}

/// The same by a second name: link(2) replaces nothing.
fn link_new(draft: &Path, path: &Path) -> io::Result<bool> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.and_then(|()| fs::remove_file(draft)).map(|()| true),
    }
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
        let (_, draft) = draft_file(&objects.path("half")).unwrap();
        fill(&draft, b"half").unwrap();
        assert!(names(&objects, "").is_empty());
    }

    #[test]
    fn a_new_object_never_takes_the_place_of_another_whichever_way_it_gets_its_name() {
        for place in [place_new, link_new] {
            let folder = tempfile::tempdir().unwrap();
            let objects = ObjectFolder::new(folder.path());
            assert!(objects.write("a", b"one", place).unwrap());
            assert!(!objects.write("a", b"two", place).unwrap());
            assert_eq!(objects.get("a").unwrap(), Some(b"one".to_vec()));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        }
    }
}
