//! The index directory, or none.

use std::io;

use format::head::VolumeId;
use host::{CachedVolume, Directory, open_cache};
use index::{Content, Files};
use units::Timestamp;

use crate::Options;

/// The cache of a volume. A directory that cannot be opened is not used: a cache never decides
/// whether an answer is right.
pub(crate) fn open(options: &Options, volume: VolumeId, now: Timestamp) -> Box<dyn Files> {
    let opened = if let Some(path) = &options.index_dir {
        Directory::open(path)
    } else {
        let (path, keeps_sessions) = (&*options.volume, options.keep_sessions.is_some());
        let id = &volume.to_string();
        open_cache(&CachedVolume { id, path, keeps_sessions }, now)
    };
    match opened {
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
