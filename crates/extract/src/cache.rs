//! The index directory as `index` wants it, or none.

use std::io;

use format::head::VolumeId;
use host::Directory;
use index::Files;

use crate::Options;

/// The cache of a volume; without a directory every read finds nothing and every write is refused.
#[derive(Debug)]
pub(crate) struct Cache(Option<Directory>);

impl Cache {
    /// A directory that cannot be opened is not used: a cache never decides whether an answer is right.
    pub(crate) fn open(options: &Options, volume: VolumeId) -> Self {
        let path = options.index_dir.clone().map_or_else(
            || host::default_cache_directory().map(|cache| cache.join(volume.to_string())),
            Ok,
        );
        Self(path.and_then(|path| Directory::open(&path)).ok())
    }

    pub(crate) fn none() -> Self {
        Self(None)
    }
}

impl Files for Cache {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let read = self.0.as_ref().map(|directory| directory.read(name).map_err(io::Error::other));
        read.unwrap_or(Ok(None))
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let directory = self.0.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        directory.write_atomic(name, bytes).map_err(io::Error::other)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0
            .as_ref()
            .map_or(Ok(Vec::new()), |directory| directory.list().map_err(io::Error::other))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |directory| directory.remove(name).map_err(io::Error::other))
    }
}
