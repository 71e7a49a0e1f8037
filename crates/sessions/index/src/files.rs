//! The index directory as this crate sees it: a flat folder of files.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use bytes::Bytes;

use crate::content::Content;

/// A folder that holds the segments of one volume and nothing else. Names contain no separators.
pub trait Files: Send + Sync {
    /// The file, to be read in parts; `None` where there is none of this name.
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Content>>>;
    /// The file's bytes; `None` where there is none of this name.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Writes the file so that readers see the old one or the new one. Until it is synced a crash
    /// may leave it damaged.
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// As [`Self::write_atomic`], of a file that comes in parts: `part` appends the next one, and
    /// says whether another follows.
    fn write_parts(
        &self,
        name: &str,
        part: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        while part(&mut bytes) {}
        self.write_atomic(name, &bytes)
    }
    /// Makes the file durable.
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Asks for the last `bytes` of the last `count` files, in the order of names, to be in memory
    /// soon. It is no error when that cannot be done.
    fn read_ahead(&self, _count: usize, _bytes: u64) {}
    /// Names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Removes the file; one that is gone already is no error.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A folder in memory: for tests, simulation and volumes without an index directory.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl MemoryFiles {
    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        // A map is whole whenever the lock is free: no operation here can panic half-way.
        stage::lock(&self.files)
    }
}

impl Files for MemoryFiles {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Content>>> {
        Ok(self.read(name)?.map(|bytes| -> Box<dyn Content> { Box::new(Bytes::from(bytes)) }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files().get(name).cloned())
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.files().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files().keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files().remove(name);
        Ok(())
    }
}

impl Files for host::Directory {
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Content>>> {
        let file = self.open_file(name).map_err(io::Error::other)?;
        Ok(file.map(|file| -> Box<dyn Content> { Box::new(file) }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Self::read(self, name).map_err(io::Error::other)
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        Self::write_atomic(self, name, bytes).map_err(io::Error::other)
    }

    fn write_parts(
        &self,
        name: &str,
        part: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> io::Result<()> {
        Self::write_parts(self, name, part).map_err(io::Error::other)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        Self::sync(self, name).map_err(io::Error::other)
    }

    fn read_ahead(&self, count: usize, bytes: u64) {
        Self::read_ahead(self, count, bytes);
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Self::list(self).map_err(io::Error::other)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Self::remove(self, name).map_err(io::Error::other)
    }
}
