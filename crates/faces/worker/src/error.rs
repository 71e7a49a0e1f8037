//! Why a process cannot answer.

use std::io;

/// What keeps a process from answering.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was not handed what it needs.
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    /// A socket.
    #[error(transparent)]
    System(#[from] io::Error),
}
