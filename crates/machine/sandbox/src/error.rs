//! What can go wrong between a process and its children.

use std::io;

/// Why a child could not be started or heard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation}")]
    System {
        /// A verb and what it was for.
        operation: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The launcher has ended, so nothing can be started any more.
    #[error("the process that starts children is gone")]
    LauncherGone,
    /// The launcher did not answer in time.
    #[error("the process that starts children does not answer")]
    LauncherSilent,
    /// The launcher refused, or the system refused the launcher.
    #[error("a child could not be started")]
    NotStarted {
        /// The system's reason.
        source: io::Error,
    },
    /// The program is not one of those that were named when the launcher was started.
    #[error("the program was not named when the launcher was started")]
    NotNamed,
    /// This process was not started by another one of ours.
    #[error("nothing was handed over: only wirespool itself starts this")]
    NothingHanded,
    /// A program of others gets nothing from strangers here.
    #[error("a program of others gets no packets without {0}, which this kernel does not have")]
    NotConfined(&'static str),
    /// A program of others gave no answer.
    #[error("the program that decodes packets {0}")]
    NotDecoded(&'static str),
}

impl Error {
    pub(crate) fn system(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { operation, source: source.into() }
    }
}
