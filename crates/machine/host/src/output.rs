//! A file that a user asked for: whole under its name, or not there at all.
//!
//! It is flushed before it gets its name. A write that succeeded says only that the page cache has
//! the bytes: where a thin pool is full, a quota of a network file system is used up or a disk
//! fails, the flush is the first that says so. Without it an extract would be called complete that
//! nobody can read, and a power cut would leave an empty file under its name.

#![expect(clippy::disallowed_methods, reason = "a boundary crate opens files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, OFlags, RenameFlags, fallocate, renameat_with, syncfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::Error;
use crate::draft::{
    draft_file, draft_folder, folder_of, link, link_as_draft, make_public, nameless_file,
};
use crate::spared;
use crate::target::{Target, target};
use crate::user::calling_user;

/// A new file without a name until [`Output::finish`]: nothing of it stays when it is dropped
/// before, or this process is killed. Where the file system has no such files it has a hidden name
/// beside its place, and a killed process leaves it. Pipes and devices are written to as they are.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    draft: Draft,
    overwrite: bool,
}

/// What a file is until it is finished.
#[derive(Debug)]
enum Draft {
    /// A pipe or a device, or the file that was asked for.
    Itself,
    Nameless,
    Hidden(PathBuf),
}

impl Output {
    /// Begins a file for its owner's eyes only. Without `overwrite` an existing one is refused.
    /// What no user means to lose is refused in any case: members of volumes, inputs, disks.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        spared::check_output(path)?;
        let fail = |error| Error::path("create", path, error);
        let found = target(path)?;
        if found == Target::Other && !path.is_dir() {
            let file = open_stream(path)?;
            return Ok(Self { path: path.to_path_buf(), file, draft: Draft::Itself, overwrite });
        }
        let is_free = overwrite && matches!(found, Target::File { .. });
        if found != Target::Absent && !is_free {
            use io::ErrorKind::{AlreadyExists, IsADirectory};
            let kind = if path.is_dir() { IsADirectory } else { AlreadyExists };
            return Err(fail(kind.into()));
        }
        let (draft, file) = if let Ok(file) = nameless_file(path) {
            (Draft::Nameless, file)
        } else {
            let (draft, file) = draft_file(path).map_err(fail)?;
            (Draft::Hidden(draft), file)
        };
        Ok(Self { path: path.to_path_buf(), file, draft, overwrite })
    }

    /// Takes space for so many bytes, where the file system can do that: later they find it.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        if matches!(self.draft, Draft::Itself) {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                Err(Error::path("write", &self.path, errno))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes all of it and gives the file its name.
    pub fn finish_with(mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::path("write", &self.path, error))?;
        self.finish()
    }

    /// The same of a file that is there to be given away: who may read it is up to the umask.
    pub fn finish_public(self, bytes: &[u8]) -> Result<(), Error> {
        let is_itself = matches!(self.draft, Draft::Itself);
        if !is_itself && make_public(&self.file).is_err() {
            return Err(Error::path("write", &self.path, io::ErrorKind::PermissionDenied));
        }
        self.finish_with(bytes)
    }

    /// Gives the file its name. A link that has it is replaced, not followed.
    pub fn finish(mut self) -> Result<(), Error> {
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Taken { path: self.path.clone() },
            _ => Error::path("write", &self.path, error),
        };
        if matches!(self.draft, Draft::Itself) {
            return Ok(());
        }
        durable(&self.file).map_err(fail)?;
        // An input may have been opened since.
        spared::check_output(&self.path)?;
        if matches!(self.draft, Draft::Nameless) {
            if !self.overwrite {
                link(&self.file, &self.path).map_err(fail)?;
                self.draft = Draft::Itself;
                return durable_name(&self.path).map_err(fail);
            }
            self.draft = Draft::Hidden(link_as_draft(&self.file, &self.path).map_err(fail)?);
        }
        let Draft::Hidden(draft) = &self.draft else { return Ok(()) };
        let flags = if self.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, draft, CWD, &self.path, flags) {
            // Not every file system knows the flag; the name was free a moment ago.
            Err(Errno::INVAL) => std::fs::rename(draft, &self.path).map_err(fail)?,
            renamed => renamed.map_err(|errno| fail(errno.into()))?,
        }
        self.draft = Draft::Itself;
        durable_name(&self.path).map_err(fail)
    }
}

impl Write for Output {
    /// An error names the file: what is written through has no other name for it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| of_file(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Draft::Hidden(draft) = &self.draft {
            // No caller is left to take the error; the hidden name says what it is.
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
        spared::check_output(path)?;
        let fail = |error| Error::path("create", path, error);
        match std::fs::read_dir(path).map(Iterator::count) {
            Ok(0) => {}
            Ok(_) => return Err(fail(io::ErrorKind::DirectoryNotEmpty.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        let draft = draft_folder(path).map_err(fail)?;
        Ok(Self { path: path.to_path_buf(), draft: Some(draft) })
    }

    /// A file of it, which is open only while something is written: there may be very many.
    pub fn file(&self, name: &str) -> Appended {
        let folder = self.draft.as_deref().unwrap_or(&self.path);
        Appended { path: folder.join(name), named: self.path.join(name) }
    }

    /// Writes files of these names and gives the folder its own.
    pub fn finish_with<N: AsRef<str>>(
        self,
        files: impl IntoIterator<Item = (N, String)>,
    ) -> Result<(), Error> {
        for (name, text) in files {
            let name = name.as_ref();
            let written = self.file(name).append(text.as_bytes());
            written.map_err(|error| Error::path("write", &self.path.join(name), error))?;
        }
        self.finish()
    }

    /// Gives the folder its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let Some(draft) = &self.draft else { return Ok(()) };
        let fail = |error| Error::path("write", &self.path, error);
        // There may be very many files: a flush of each would take a commit of the journal each.
        let folder = File::open(draft).map_err(fail)?;
        syncfs(&folder).map_err(|errno| fail(errno.into()))?;
        std::fs::rename(draft, &self.path).map_err(fail)?;
        self.draft = None;
        durable_name(&self.path).map_err(|error| Error::path("write", &self.path, error))
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
    /// Where it is in the end, for errors.
    named: PathBuf,
}

impl Appended {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&self.path);
        file?.write_all(bytes)
    }
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.append(bytes).map_err(|error| of_file(&self.named, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error that says of which file it is.
fn of_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Has the disk keep what was written. Not every file system has something to flush.
fn durable(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        flushed => flushed,
    }
}

/// The same of the name. A folder that may be written and not read cannot be asked for it.
fn durable_name(path: &Path) -> io::Result<()> {
    File::open(folder_of(path)).map_or(Ok(()), |folder| durable(&folder))
}

/// Opens what is no file and is there already: a pipe, a terminal, `/dev/null`. A pipe that another
/// user has put there is refused: it would hand packets to its reader.
fn open_stream(path: &Path) -> Result<File, Error> {
    let fail = |error| Error::path("create", path, error);
    let seen = std::fs::metadata(path).map_err(fail)?;
    let owner = seen.uid();
    let is_foreign = owner != geteuid().as_raw() && owner != 0 && Some(owner) != calling_user();
    if seen.file_type().is_fifo() && is_foreign {
        return Err(Error::ForeignPipe { path: path.to_path_buf() });
    }
    let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
    let opened = file.metadata().map_err(fail)?;
    if (seen.dev(), seen.ino()) != (opened.dev(), opened.ino()) {
        return Err(fail(io::Error::other("it was exchanged meanwhile")));
    }
    Ok(file)
}

/// Writes a small file whole, in place of one that is there; who may read it is up to the umask.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Output::create(path, true)?.finish_public(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::umask;
    use std::os::unix::fs::PermissionsExt as _;

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
    fn a_folder_in_its_place_is_named_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = Output::create(folder.path(), true).unwrap_err();
        let causes = [error.to_string(), core::error::Error::source(&error).unwrap().to_string()];
        assert!(causes.concat().contains("is a directory"), "{causes:?}");
    }

    /// As after `kill -9`: nothing is dropped.
    #[test]
    fn a_file_that_is_never_finished_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        if nameless_file(&path).is_err() {
            println!("not run: the file system of temporary files has none without a name");
            return;
        }
        for overwrite in [false, true] {
            let mut output = Output::create(&path, overwrite).unwrap();
            output.write_all(b"half").unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            core::mem::forget(output);
        }
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
    fn a_file_that_came_meanwhile_is_kept_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Output::create(&path, false).unwrap();
        std::fs::write(&path, b"another").unwrap();
        let error = output.finish().unwrap_err().to_string();
        assert!(error.contains("out exists already"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
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
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("out"), folder.path().join("theirs"));
        std::fs::write(&theirs, b"theirs").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        assert!(Output::create(&path, false).is_err(), "a name is taken");
        Output::create(&path, true).unwrap().finish_with(b"ours").unwrap();
        assert!(!path.is_symlink());
        let read = |path| std::fs::read(path).unwrap();
        assert_eq!((read(&path), read(&theirs)), (b"ours".to_vec(), b"theirs".to_vec()));

        // One that leads nowhere: what it names is not made.
        let absent = folder.path().join("absent");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&absent, &path).unwrap();
        let finished = Output::create(&path, false).unwrap().finish_with(b"ours");
        assert!(finished.is_err() && !absent.exists());
        write_file(&path, b"ours").unwrap();
        assert!(!absent.exists() && !path.is_symlink());
    }

    #[test]
    fn nobody_else_reads_a_file_before_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let output = Output::create(&path, false).unwrap();
        assert_eq!(output.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        output.finish().unwrap();
        assert_eq!(mode(&path), 0o600);
        write_file(&path, b"x").unwrap();
        assert_eq!(mode(&path), 0o666 & !umask());
    }

    #[test]
    fn a_pipe_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mkfifoat(CWD, &path, mode).unwrap();
        let reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        drop(Output::create(&path, false).unwrap());
        if !geteuid().is_root() {
            println!("not run: needs root to give a pipe to another user");
            return;
        }
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        let error = Output::create(&path, true).unwrap_err().to_string();
        assert!(error.ends_with("is a pipe of another user, who would read it"), "{error}");
        drop(reader);
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
