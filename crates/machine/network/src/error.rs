//! What can go wrong with networks of this machine.

use std::path::Path;

/// Why the operating system refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed, and no more is known of it.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// No interface of this machine has that name.
    #[error("there is no interface {interface:?}; `ip link` lists those of this machine")]
    NoInterface {
        /// The name that was given.
        interface: String,
    },
    /// What may be known of a process of somebody else is not told.
    #[error("process {process} belongs to another user; run as that user, or as root")]
    OtherUser {
        /// The process.
        process: u32,
    },
    /// Only root may enter it.
    #[error("it is in another network namespace, which only root may enter (CAP_SYS_ADMIN)")]
    OtherNamespace,
    /// No network namespace, neither as oneself nor inside of a user namespace.
    #[error(
        "cannot make a network namespace; run as root, give the program the capabilities \
         CAP_SYS_ADMIN and CAP_NET_ADMIN, or allow user namespaces"
    )]
    Namespace {
        /// The system's reason.
        source: std::io::Error,
    },
    /// Only root may have programs reach the world from a namespace.
    #[error(
        "cannot give a program a network of its own; run as root, or with the capabilities \
         CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted,
}

impl Error {
    pub(crate) fn path(
        operation: &'static str,
        path: &Path,
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self::Host(host::Error::path(operation, path, source))
    }

    pub(crate) fn system(operation: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::Host(host::Error::system(operation, source))
    }
}
