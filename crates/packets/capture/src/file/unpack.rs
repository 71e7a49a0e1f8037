//! Compressed captures: what gzip and zstd made is unpacked as it is read.
//!
//! Memory is that of the format's window: 32 KiB for gzip, at most 128 MiB for zstd. What a small
//! file unpacks to has no bound and needs none: it is read as a pipe is, and what is no capture is
//! refused at its first bytes. A capture that was compressed twice is unpacked once, and refused.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder;

use super::ready::is_ready;

/// The largest window of zstd that is unpacked, as a power of two: what its own program takes
/// without being asked to.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// That window in bytes.
pub(super) const WINDOW_BYTES_MAX: usize = 1 << ZSTD_WINDOW_LOG_MAX;
/// Compressed bytes read at once.
const READ_SIZE: usize = 64 << 10;
/// So many compressed bytes that unpack to nothing are looked at in one go: members and frames may
/// be empty without end, and who reads is to hear a stop between them.
const FRUITLESS_BYTES: usize = 1 << 20;

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
pub(super) struct Unpacked {
    decoder: Unpacker,
    /// It has given everything that it can without more of the file. Zstd's takes it for damage to
    /// be asked again and again then.
    is_drained: bool,
}

enum Unpacker {
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
        let packed = Cursor::new(seen).chain(Ready { file, waits, left: FRUITLESS_BYTES });
        let packed = BufReader::with_capacity(READ_SIZE, packed);
        let decoder = match compression {
            Compression::Gzip => Unpacker::Gzip(Box::new(MultiGzDecoder::new(packed))),
            Compression::Zstd => {
                let mut decoder = Decoder::with_buffer(packed)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Unpacker::Zstd(Box::new(decoder))
            }
        };
        Ok(Self { decoder, is_drained: false })
    }

    /// The compressed file.
    pub(super) fn file(&self) -> &File {
        let packed = match &self.decoder {
            Unpacker::Gzip(decoder) => decoder.get_ref(),
            Unpacker::Zstd(decoder) => decoder.get_ref(),
        };
        &packed.get_ref().get_ref().1.file
    }
}

impl Read for Unpacked {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let packed = match &mut self.decoder {
            Unpacker::Gzip(decoder) => decoder.get_mut(),
            Unpacker::Zstd(decoder) => decoder.get_mut(),
        };
        let (_, file) = packed.get_mut().get_mut();
        if self.is_drained && file.is_empty()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        file.left = FRUITLESS_BYTES;
        let read = match &mut self.decoder {
            Unpacker::Gzip(decoder) => decoder.read(room),
            Unpacker::Zstd(decoder) => decoder.read(room),
        };
        let is_drained = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.is_drained = read.as_ref().is_err_and(is_drained);
        read
    }
}

impl core::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.decoder {
            Unpacker::Gzip(_) => "Gzip",
            Unpacker::Zstd(_) => "Zstd",
        })
    }
}

/// A file or a pipe that is read only when it has something, and only so far, so that nothing waits
/// or turns for ever within a decoder.
pub(super) struct Ready {
    file: File,
    waits: bool,
    /// Bytes that may be read before the unpacker is asked again.
    left: usize,
}

impl Ready {
    /// It has nothing to give now.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.waits && !is_ready(&self.file, core::time::Duration::ZERO)?)
    }
}

impl Read for Ready {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || self.is_empty()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room = room.get_mut(..room.len().min(self.left)).unwrap_or_default();
        let count = self.file.read(room)?;
        self.left -= count;
        Ok(count)
    }
}
