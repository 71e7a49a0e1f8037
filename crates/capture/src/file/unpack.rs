//! Compressed captures: what gzip and zstd made is unpacked as it is read.
//!
//! Memory is that of the format's window: 32 KiB for gzip, at most 128 MiB for zstd. What a small
//! file unpacks to has no bound and needs none: it is read as a pipe is, and what is no capture is
//! refused at its first bytes. A capture that was compressed twice is unpacked once, and refused.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder;

use super::input::is_ready;

/// The largest window of zstd that is unpacked, as a power of two: what its own program takes
/// without being told to.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Compressed bytes read at once.
const READ_SIZE: usize = 64 << 10;

/// What made a file smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// By the first bytes of a file.
    pub(super) fn recognize(magic: [u8; 4]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The compressed bytes, from the first one on.
type Packed = BufReader<Chain<Cursor<Vec<u8>>, Ready>>;

/// Reads what a compressed file holds.
pub(super) enum Unpacked {
    Gzip(Box<MultiGzDecoder<Packed>>),
    Zstd(Box<Decoder<'static, Packed>>),
}

impl Unpacked {
    /// What is in `file`, of which `seen` has been read.
    pub(super) fn new(
        compression: Compression,
        seen: Vec<u8>,
        (file, waits): (File, bool),
    ) -> io::Result<Self> {
        let packed = Cursor::new(seen).chain(Ready { file, waits });
        let packed = BufReader::with_capacity(READ_SIZE, packed);
        Ok(match compression {
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(packed))),
            Compression::Zstd => {
                let mut decoder = Decoder::with_buffer(packed)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Self::Zstd(Box::new(decoder))
            }
        })
    }

    /// The compressed file.
    pub(super) fn file(&self) -> &File {
        let packed = match self {
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref(),
        };
        &packed.get_ref().get_ref().1.file
    }
}

impl Read for Unpacked {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(room),
            Self::Zstd(decoder) => decoder.read(room),
        }
    }
}

impl core::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "Gzip",
            Self::Zstd(_) => "Zstd",
        })
    }
}

/// A file or a pipe that is read only when it has something, so that nothing waits within a
/// decoder.
pub(super) struct Ready {
    file: File,
    waits: bool,
}

impl Read for Ready {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.waits && !is_ready(&self.file, core::time::Duration::ZERO)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.file.read(room)
    }
}
