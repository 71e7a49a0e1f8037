//! What can go wrong between us and the operating system.

use std::path::{Path, PathBuf};

use units::ByteSize;

/// Why the operating system refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call on a path failed.
    #[error("cannot {operation} {}", path.display())]
    Path {
        /// A verb and its preposition.
        operation: &'static str,
        /// What it was tried on.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of this name has come while ours was written, and is not replaced.
    #[error("{} exists already: something else made it meanwhile", path.display())]
    Taken {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file has more than its reader takes; nothing of it was used.
    #[error("{} is longer than {bytes_max}, the most that is read of it", path.display())]
    TooLong {
        /// Path of the file, or `-`.
        path: PathBuf,
        /// The most that it may have.
        bytes_max: ByteSize,
    },
    /// A system call without a path failed.
    #[error("cannot {operation}")]
    System {
        /// A verb.
        operation: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// This machine does not open a credential.
    #[error("{} is a credential that systemd-creds does not open here: {said}", path.display())]
    Credential {
        /// Path of the file.
        path: PathBuf,
        /// What the program says.
        said: String,
    },
    /// There is no user of this name.
    #[error("there is no user {name:?}")]
    NoUser {
        /// What was asked for.
        name: String,
    },
    /// A folder that others could change is not trusted with what lies in it.
    #[error("{} is not used: {why}", path.display())]
    UnsafeFolder {
        /// Path of the directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file that is not trusted, or not free.
    #[error("{} is not used: {why}", path.display())]
    UnsafeFile {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file of which only its owner may know, and others may read it.
    #[error(
        "others may read or change the key {} (mode {mode:04o}): chmod 600, or make another one",
        path.display()
    )]
    ReadableKey {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// A key that another user can exchange.
    #[error("the key {} belongs to another user, who could exchange it", path.display())]
    ForeignKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// A pipe that another user has put where a file should go.
    #[error("{} is a pipe of another user, who would read it", path.display())]
    ForeignPipe {
        /// Path of the pipe.
        path: PathBuf,
    },
    /// An output would destroy what is there, which is never meant.
    #[error("{} {why}: name another place", path.display())]
    Spared {
        /// Where the output should go.
        path: PathBuf,
        /// What the path is now.
        why: &'static str,
    },
    /// There is no folder of the user's own for sockets.
    #[error("no folder for a socket: none of XDG_RUNTIME_DIR, XDG_CACHE_HOME and HOME is set")]
    NoSocketFolder,
    /// Neither `XDG_CACHE_HOME` nor `HOME` is set to an absolute path.
    #[error("no cache directory: neither XDG_CACHE_HOME nor HOME is set")]
    NoCacheDirectory,
}

impl Error {
    /// Of a call on a path.
    pub fn path(operation: &'static str, path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Path { operation, path: path.to_path_buf(), source: source.into() }
    }

    /// Of a call without one.
    pub fn system(operation: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System { operation, source: source.into() }
    }
}
