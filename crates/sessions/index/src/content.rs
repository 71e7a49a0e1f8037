//! The bytes of a segment's file, read in parts.

use core::fmt::Debug;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;

use bytes::Bytes;

use units::number::to_u64;

use crate::error::{Error, Result};

/// A file that can be read anywhere. What was opened stays readable when its name goes away.
pub trait Content: Send + Sync + Debug {
    /// Bytes of the file.
    fn size_bytes(&self) -> u64;
    /// Exactly these bytes.
    fn read(&self, offset: u64, len: usize) -> io::Result<Bytes>;
}

impl Content for Bytes {
    fn size_bytes(&self) -> u64 {
        to_u64(self.len())
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let range =
            usize::try_from(offset).ok().and_then(|begin| Some(begin..begin.checked_add(len)?));
        let range = range.filter(|range| range.end <= self.len());
        Ok(self.slice(range.ok_or(io::ErrorKind::UnexpectedEof)?))
    }
}

impl Content for host::OpenFile {
    fn size_bytes(&self) -> u64 {
        Self::size_bytes(self)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; len];
        Self::read_at(self, offset, &mut bytes).map_err(io::Error::other)?;
        Ok(bytes.into())
    }
}

/// A content, and how much of it was read.
#[derive(Debug)]
pub(crate) struct Source {
    content: Box<dyn Content>,
    read_bytes: AtomicU64,
}

impl Source {
    pub(crate) fn new(content: Box<dyn Content>) -> Self {
        Self { content, read_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.content.size_bytes()
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let bytes = self.content.read(offset, len).map_err(Error::Content)?;
        let count = to_u64(len);
        self.read_bytes.fetch_add(count, Ordering::Relaxed);
        Ok(bytes)
    }
}
