//! The bytes of one file or pipe, in a buffer that grows only as far as one record needs.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem;
use std::time::Duration;

use units::number::to_u64;

use super::ready::is_ready;
use super::unpack::{Compression, Unpacked};

/// Large enough that system calls cost nothing against the copy, small enough to stay in the
/// second-level cache beside what the packets are copied to.
const READ_SIZE: usize = 256 << 10;

/// What became of an attempt to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filled {
    Some,
    Nothing,
    End,
}

/// Where bytes come from.
#[derive(Debug)]
enum Origin {
    File(File),
    Unpacked(Unpacked),
    /// A file that could not be unpacked.
    Nothing,
}

/// The unread part of a file: what is buffered, and where that starts.
#[derive(Debug)]
pub(super) struct Input {
    origin: Origin,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes from the file's start to `start`, as they are unpacked.
    offset: u64,
    /// A pipe or device, which may have nothing to give for a while.
    waits: bool,
}

impl Input {
    pub(super) fn new(file: File, buffer: Vec<u8>) -> io::Result<Self> {
        let waits = !file.metadata()?.is_file();
        let mut buffer = buffer;
        buffer.resize(buffer.len().max(READ_SIZE), 0);
        Ok(Self { origin: Origin::File(file), buffer, start: 0, end: 0, offset: 0, waits })
    }

    /// The buffer, for the next file.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        let mut buffer = self.buffer;
        buffer.truncate(READ_SIZE);
        buffer.shrink_to_fit();
        buffer
    }

    /// Reads on with what the file holds; false if it was unpacked already.
    pub(super) fn unpack(&mut self, compression: Compression) -> io::Result<bool> {
        let Origin::File(file) = mem::replace(&mut self.origin, Origin::Nothing) else {
            return Ok(false);
        };
        let seen = self.bytes().to_vec();
        self.origin = Origin::Unpacked(Unpacked::new(compression, seen, (file, self.waits))?);
        (self.start, self.end) = (0, 0);
        Ok(true)
    }

    /// What is buffered.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// A pipe or device.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Whether the file has nothing behind what was read. Of what is unpacked that shows with the
    /// next read only.
    pub(super) fn is_at_end(&self) -> bool {
        let Origin::File(file) = &self.origin else { return false };
        let mut file = file;
        let place = file.stream_position();
        place.is_ok_and(|place| file.metadata().is_ok_and(|file| file.len() <= place))
    }

    /// Place of the first buffered byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Gives up the first `len` buffered bytes.
    pub(super) fn consume(&mut self, len: usize) {
        assert!(len <= self.end - self.start, "only what is buffered can be consumed");
        self.start += len;
        self.offset += to_u64(len);
    }

    /// Reads once, as much as there is space for; makes space for `needed` bytes from the first
    /// buffered one.
    pub(super) fn fill(&mut self, needed: usize, wait: Duration) -> io::Result<Filled> {
        if let Origin::File(file) = &self.origin
            && self.waits
            && !is_ready(file, wait)?
        {
            return Ok(Filled::Nothing);
        }
        if self.start > 0 {
            // Not for nothing: a writer that gives single bytes of a large block would cost a copy
            // of the block for each.
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if needed > self.buffer.len() {
            // A size in a damaged file is no reason to take that much memory: it grows with what is
            // really there.
            let grown = needed.min(self.end.max(READ_SIZE) * 2).next_multiple_of(4096);
            self.buffer.resize(grown.max(self.buffer.len()), 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = match &mut self.origin {
            Origin::File(file) => file.read(room),
            Origin::Unpacked(unpacked) => unpacked.read(room),
            Origin::Nothing => Ok(0),
        };
        match read {
            Ok(0) => Ok(Filled::End),
            Ok(count) => {
                self.end += count;
                Ok(Filled::Some)
            }
            Err(error) if is_transient(&error) => {
                // A decoder that has nothing left to give waits here for its pipe.
                if let Origin::Unpacked(unpacked) = &self.origin {
                    is_ready(unpacked.file(), wait)?;
                }
                Ok(Filled::Nothing)
            }
            Err(error) => Err(error),
        }
    }
}

/// A signal came, or a pipe that was set non-blocking has nothing.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
