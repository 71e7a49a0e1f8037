//! A directory that goes away again.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::process::geteuid;

use crate::{Error, random_bytes};

/// A directory for this process's user only, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    /// Makes one where the system wants temporary files (`TMPDIR`).
    pub fn new(prefix: &str) -> Result<Self, Error> {
        let number = u64::from_le_bytes(random_bytes()?);
        Self::at(std::env::temp_dir().join(format!("{prefix}{number:016x}")))
    }

    /// Makes one with this name.
    pub fn at(path: PathBuf) -> Result<Self, Error> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Error::path("make the directory", &path, error))?;
        Ok(Self { path })
    }

    /// One that a killed process of this user left: it goes with all that is in it when this is
    /// dropped. Folders of others stay, and what a link leads to.
    pub fn left_at(path: PathBuf) -> Option<Self> {
        let found = fs::symlink_metadata(&path).ok()?;
        let is_own = found.uid() == geteuid().as_raw();
        // Only then is there one to be dropped: it takes the folder along.
        (found.is_dir() && is_own).then(|| Self { path })
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
    }
}

#[cfg(test)]
mod tests {
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
