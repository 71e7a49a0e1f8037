//! The index directory, or none.

use std::io;

use format::head::VolumeId;
use host::{CachedVolume, open_index};
use index::{Content, Files};
use units::Timestamp;

use crate::Options;

/// The cache of a volume. A directory that cannot be opened is not used: a cache never decides
/// whether an answer is right.
pub(crate) fn open(
    options: &Options,
    volume: VolumeId,
    now: Timestamp,
) -> Box<dyn Files + Send + Sync> {
    let (path, keeps_sessions) = (&*options.volume, options.keep_sessions.is_some());
    let volume = CachedVolume { id: &volume.to_string(), path, keeps_sessions };
    match open_index(options.index_dir.as_deref(), &volume, now) {
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
