//! What can go wrong between a volume and its members.

use std::path::{Path, PathBuf};

/// Why a device could not be opened, read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum Error {
    #[error("{} does not exist", path.display())]
    NotFound { path: PathBuf },
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    #[error("no permission to open {}", path.display())]
    PermissionDenied { path: PathBuf },
    #[error("{} is read-only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} is mounted on {}", path.display(), mount_point.display())]
    Mounted { path: PathBuf, mount_point: PathBuf },
    #[error("{} is in use by another process or by the system", path.display())]
    InUse { path: PathBuf },
    #[error("{} has {size_bytes} bytes and needs at least {minimum_bytes}", path.display())]
    TooSmall { path: PathBuf, size_bytes: u64, minimum_bytes: u64 },
    #[error("{} has logical blocks of {size_bytes} bytes, more than 4096", path.display())]
    LogicalBlock { path: PathBuf, size_bytes: u64 },
    #[error("{} is neither a regular file nor a block device", path.display())]
    NotAFileOrBlockDevice { path: PathBuf },
    #[error("cannot {operation} {}: {}", path.display(), describe(*errno))]
    Path { operation: &'static str, path: PathBuf, errno: i32 },
    #[error("cannot {operation} at byte {offset}: {}", describe(*errno))]
    Io { operation: &'static str, offset: u64, errno: i32 },
    #[error("cannot get {size_bytes} bytes of memory for buffers: {}", describe(*errno))]
    Memory { size_bytes: u64, errno: i32 },
    #[error("refused since an earlier failure: {cause}")]
    Latched { cause: Box<Error> },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(operation: &'static str, offset: u64, errno: rustix::io::Errno) -> Self {
        Self::Io { operation, offset, errno: errno.raw_os_error() }
    }

    pub(crate) fn path(operation: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        Self::Path { operation, path: path.to_path_buf(), errno: errno.raw_os_error() }
    }
}

fn describe(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}
