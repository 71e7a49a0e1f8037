//! A directory whose files are written as a recorder does.

use core::fmt;
use std::path::{Path, PathBuf};

use device::{CreateOptions, Device};

use crate::error::Error;

/// Where files are made and removed.
pub trait Folder: fmt::Debug {
    /// A new file of which only the size is set, opened for writing.
    fn create(&self, name: &str, size_bytes: u64) -> Result<Box<dyn Device>, Error>;

    /// Removes one that no process has open.
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// In how many extents its bytes lie; `None` where the file system does not say.
    fn extents(&self, name: &str) -> Result<Option<u64>, Error>;
}

/// A directory of our own beside a target; it goes with all that is in it when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnFolder(host::TemporaryDirectory);

impl OwnFolder {
    /// The one that goes with a file of our own, and says so to who finds both when this run was
    /// killed.
    pub(crate) fn of(file: &Path) -> Result<Self, Error> {
        let own = host::TemporaryDirectory::at(beside(file))?;
        // Where that cannot be noted, what a killed run leaves is left to the user.
        own.note_companion(file).unwrap_or_default();
        Ok(Self(own))
    }

    /// Whether a killed run made this file and noted that.
    pub(crate) fn goes_with(file: &Path) -> bool {
        host::TemporaryDirectory::is_companion(&beside(file), file)
    }

    /// Removes the one that went with a file whose run was killed.
    pub(crate) fn sweep_up(file: &Path) {
        drop(host::TemporaryDirectory::left_at(beside(file)));
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-files");
    name.into()
}

impl Folder for OwnFolder {
    fn create(&self, name: &str, size_bytes: u64) -> Result<Box<dyn Device>, Error> {
        let path = self.file(name);
        let options = CreateOptions { size_bytes, sparse: true, overwrite: false };
        device::create_file(&path, &options, &mut |_, _| core::ops::ControlFlow::Continue(()))?;
        Ok(device::open(&path, &device::Options::default())?)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        Ok(device::remove_file(&self.file(name))?)
    }

    fn extents(&self, name: &str) -> Result<Option<u64>, Error> {
        Ok(blockdev::extents(&self.file(name))?)
    }
}
