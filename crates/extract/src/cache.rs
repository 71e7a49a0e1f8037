//! The index directory, or none.

use std::io;

use format::head::VolumeId;
use host::Directory;
use index::{Content, Files};

use crate::Options;

/// The cache of a volume. A directory that cannot be opened is not used: a cache never decides
/// whether an answer is right.
pub(crate) fn open(options: &Options, volume: VolumeId) -> Box<dyn Files> {
    let path = options.index_dir.clone().map_or_else(
        || host::default_cache_directory().map(|cache| cache.join(volume.to_string())),
        Ok,
    );
    match path.and_then(|path| Directory::open(&path)) {
        Ok(directory) => Box::new(directory),
        Err(_) => Box::new(NoCache),
    }
}

/// Every read finds nothing, every write is refused.
pub(crate) struct NoCache;

impl Files for NoCache {
    fn open(&self, _: &str) -> io::Result<Option<Box<dyn Content>>> {
        Ok(None)
    }

    fn read(&self, _: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn write_atomic(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
