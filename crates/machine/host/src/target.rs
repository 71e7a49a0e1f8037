//! What a path names, before something is read from it or written to it.

use std::path::Path;

use rustix::fs::{FileType, stat};
use rustix::io::Errno;

use crate::Error;

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its length.
        size_bytes: u64,
    },
    /// A block device.
    BlockDevice,
    /// A directory, a character device, a pipe or a socket.
    Other,
}

/// What `path` names, links followed.
pub fn target(path: &Path) -> Result<Target, Error> {
    let found = match stat(path) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Target::Absent),
        Err(errno) => return Err(Error::path("examine", path, errno)),
    };
    Ok(match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            Target::File { size_bytes: u64::try_from(found.st_size).unwrap_or(0) }
        }
        FileType::BlockDevice => Target::BlockDevice,
        _ => Target::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_told_apart_from_what_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [0; 4096]).unwrap();
        assert_eq!(target(&path).unwrap(), Target::File { size_bytes: 4096 });
        assert_eq!(target(directory.path()).unwrap(), Target::Other);
        assert_eq!(target(&directory.path().join("absent")).unwrap(), Target::Absent);
    }
}
