//! A file that a user asked for: whole under its name, or not there at all.

#![expect(clippy::disallowed_methods, reason = "a door opens files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::Error;
use crate::usage::{Target, target};

/// The hidden name beside a place; a path that ends in `..` has none.
fn draft(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id())))
}

/// A new file under a hidden name beside its place until [`Output::finish`]; dropped before, it is
/// removed. Pipes and devices are written to as they are.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    draft: Option<PathBuf>,
    overwrite: bool,
}

impl Output {
    /// Begins a file for its owner's eyes only. Without `overwrite` an existing one is refused.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        let fail = |error| Error::path("create", path, error);
        let found = target(path)?;
        let mut options = OpenOptions::new();
        options.write(true);
        if found == Target::Other && !path.is_dir() {
            let file = options.open(path).map_err(fail)?;
            return Ok(Self { path: path.to_path_buf(), file, draft: None, overwrite });
        }
        let is_free = overwrite && matches!(found, Target::File { .. });
        if found != Target::Absent && !is_free {
            return Err(fail(io::ErrorKind::AlreadyExists.into()));
        }
        let draft = draft(path).ok_or_else(|| fail(io::ErrorKind::IsADirectory.into()))?;
        let file = options.create(true).truncate(true).mode(0o600).open(&draft).map_err(fail)?;
        Ok(Self { path: path.to_path_buf(), file, draft: Some(draft), overwrite })
    }

    /// Writes all of it and gives the file its name.
    pub fn finish_with(mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::path("write", &self.path, error))?;
        self.finish()
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let fail = |error| Error::path("write", &self.path, error);
        let Some(draft) = &self.draft else { return Ok(()) };
        let flags = if self.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, draft, CWD, &self.path, flags) {
            // Not every file system knows the flag; the name was free a moment ago.
            Err(Errno::INVAL) => std::fs::rename(draft, &self.path).map_err(fail)?,
            renamed => renamed.map_err(|errno| fail(errno.into()))?,
        }
        self.draft = None;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            // Nobody is left to tell; the hidden name says what it is.
            drop(std::fs::remove_file(draft));
        }
    }
}

/// A new folder of files, under a hidden name beside its place until [`OutputFolder::finish`];
/// dropped before, it is removed with everything in it.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    draft: Option<PathBuf>,
}

impl OutputFolder {
    /// Begins a folder for its owner's eyes only, at a place where nothing is, or an empty folder.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let fail = |error| Error::path("create", path, error);
        match std::fs::read_dir(path).map(Iterator::count) {
            Ok(0) => {}
            Ok(_) => return Err(fail(io::ErrorKind::DirectoryNotEmpty.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        let draft = draft(path).ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        std::fs::DirBuilder::new().mode(0o700).create(&draft).map_err(fail)?;
        Ok(Self { path: path.to_path_buf(), draft: Some(draft) })
    }

    /// A file of it, which is open only while something is written: there may be very many.
    pub fn file(&self, name: &str) -> Appended {
        let folder = self.draft.as_deref().unwrap_or(&self.path);
        Appended { path: folder.join(name) }
    }

    /// Writes files of these names and gives the folder its own.
    pub fn finish_with<N: AsRef<str>>(
        self,
        files: impl IntoIterator<Item = (N, String)>,
    ) -> Result<(), Error> {
        for (name, text) in files {
            let name = name.as_ref();
            let written = self.file(name).write_all(text.as_bytes());
            written.map_err(|error| Error::path("write", &self.path.join(name), error))?;
        }
        self.finish()
    }

    /// Gives the folder its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let Some(draft) = &self.draft else { return Ok(()) };
        let renamed = std::fs::rename(draft, &self.path);
        renamed.map_err(|error| Error::path("write", &self.path, error))?;
        self.draft = None;
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            drop(std::fs::remove_dir_all(draft));
        }
    }
}

/// A file that grows at its end.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(&self.path);
        file?.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a file to be read.
pub fn open_input(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| Error::path("open", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(names(), 0);

        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), names()), (b"whole".to_vec(), 1));
    }

    #[test]
    fn an_existing_file_is_kept_unless_told_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, b"old").unwrap();
        assert!(Output::create(&path, false).is_err());
        let mut output = Output::create(&path, true).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        output.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(Output::create(folder.path(), true).is_err());
    }

    #[test]
    fn a_folder_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = OutputFolder::create(&path).unwrap();
        output.file("one").write_all(b"1").unwrap();
        drop(output);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let output = OutputFolder::create(&path).unwrap();
        let mut one = output.file("one");
        one.write_all(b"1").unwrap();
        one.write_all(b"2").unwrap();
        assert!(!path.exists());
        output.finish().unwrap();
        assert_eq!(std::fs::read(path.join("one")).unwrap(), b"12");
        assert!(OutputFolder::create(&path).is_err(), "what is there stays");
    }

    #[test]
    fn a_name_taken_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Output::create(&path, false).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        assert!(output.finish().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }
}
