//! A directory that goes away again.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

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

    /// One that a killed process left: it goes with all that is in it when this is dropped.
    pub fn left_at(path: PathBuf) -> Option<Self> {
        let found = fs::symlink_metadata(&path).ok()?;
        found.is_dir().then_some(Self { path })
    }

    /// Where it is.
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

/// Writes a small file.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|error| Error::path("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_away_with_everything_in_it() {
        let directory = TemporaryDirectory::new("wirespool-test-").unwrap();
        let path = directory.path().to_path_buf();
        write_file(&path.join("file"), b"x").unwrap();
        assert_eq!(fs::read(path.join("file")).unwrap(), b"x");
        drop(directory);
        assert!(!path.exists());
    }
}
