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
    #[error(
        "{} lies in {}, which another process has open for writing",
        path.display(),
        file.display()
    )]
    BackingInUse { path: PathBuf, file: PathBuf },
    #[error(
        "{} and {} are one and the same storage under two names; give one of them",
        first.display(),
        second.display()
    )]
    SameStorage { first: PathBuf, second: PathBuf },
    #[error("{} has {size_bytes} bytes and needs at least {minimum_bytes}", path.display())]
    TooSmall { path: PathBuf, size_bytes: u64, minimum_bytes: u64 },
    #[error("{} has logical blocks of {size_bytes} bytes, more than 4096", path.display())]
    LogicalBlock { path: PathBuf, size_bytes: u64 },
    #[error("{} is neither a regular file nor a block device", path.display())]
    NotAFileOrBlockDevice { path: PathBuf },
    #[error("cannot {operation} {}: {}", path.display(), describe(*errno))]
    Path { operation: &'static str, path: PathBuf, errno: i32 },
    #[error("{} has not answered for {seconds} s", path.display())]
    Silent { path: PathBuf, seconds: u64 },
    #[error("given up after {failed} reads that failed and took {seconds} s")]
    GivenUp { failed: u64, seconds: u64 },
    #[error("cannot {operation} at byte {offset}: {}", describe(*errno))]
    Io { operation: &'static str, offset: u64, errno: i32 },
    #[error("cannot get {size_bytes} bytes of memory for buffers: {}", describe(*errno))]
    Memory { size_bytes: u64, errno: i32 },
    #[error("the file was removed while it was written: what is in it is gone when it is closed")]
    Removed,
    #[error("refused since an earlier failure: {cause}")]
    Latched { cause: Box<Error> },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Whether it is the device that failed, and not who asked for it: others may go on without.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Io { .. }
            | Self::Path { .. }
            | Self::Silent { .. }
            | Self::GivenUp { .. }
            | Self::Removed => true,
            Self::Latched { cause } => cause.is_failure(),
            _ => false,
        }
    }

    /// The device does not answer, and may be well when it does again.
    pub fn is_silent(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Latched { cause } => cause.is_silent(),
            _ => false,
        }
    }

    /// There is no space left where the file lies, or below a device.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Io { errno, .. } | Self::Path { errno, .. } => {
                matches!(*errno, libc::ENOSPC | libc::EDQUOT)
            }
            Self::Latched { cause } => cause.is_full(),
            _ => false,
        }
    }

    /// The device itself is not there any more.
    pub fn is_gone(&self) -> bool {
        match self {
            Self::Io { errno, .. } | Self::Path { errno, .. } => {
                matches!(*errno, libc::ENODEV | libc::ENXIO)
            }
            Self::Removed => true,
            Self::Latched { cause } => cause.is_gone(),
            _ => false,
        }
    }

    pub(crate) fn io(operation: &'static str, offset: u64, errno: rustix::io::Errno) -> Self {
        Self::Io { operation, offset, errno: errno.raw_os_error() }
    }

    pub(crate) fn path(operation: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        Self::Path { operation, path: path.to_path_buf(), errno: errno.raw_os_error() }
    }
}

/// The system's words. Those of ENOSPC are of files: a disk without space for a block it always had
/// is none that is full.
fn describe(errno: i32) -> String {
    let words = std::io::Error::from_raw_os_error(errno);
    if errno == rustix::io::Errno::NOSPC.raw_os_error() {
        return format!(
            "{words}: of a disk this means that it was pulled out or that the thin pool below it \
             is full, of a file that its file system is full"
        );
    }
    words.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_space_is_said_to_be_gone_or_thin() {
        let error = Error::io("write", 4096, rustix::io::Errno::NOSPC).to_string();
        assert!(error.starts_with("cannot write at byte 4096: "), "{error}");
        assert!(error.contains("(os error 28): of a disk") && error.contains("pulled out"));
        let other = Error::io("write", 0, rustix::io::Errno::IO).to_string();
        assert!(other.ends_with("(os error 5)"), "{other}");
    }
}
