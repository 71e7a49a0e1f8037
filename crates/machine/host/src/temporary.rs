//! A directory that goes away again.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

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

    /// Path of the temporary directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
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
}
