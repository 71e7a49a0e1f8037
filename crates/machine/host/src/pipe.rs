//! A pipe inside of this process, for a job that reads files and one that writes them.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use crate::Error;

/// The end that is read from, by name; it has that name until this is dropped.
#[derive(Debug)]
pub struct NamedEnd {
    end: PipeReader,
}

impl NamedEnd {
    /// Under which this process can open it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.end.as_raw_fd()).into()
    }
}

/// Makes a pipe.
pub fn pipe() -> Result<(NamedEnd, PipeWriter), Error> {
    let path = PathBuf::from("pipe");
    let (end, writer) = std::io::pipe().map_err(|error| Error::path("make a", &path, error))?;
    Ok((NamedEnd { end }, writer))
}
