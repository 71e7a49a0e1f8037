//! Framing: block type, total length, body, trailing total length (section 3.1, "General Block
//! Structure").

use core::fmt;

use super::encode::{put_block, put_end_of_options};
use super::{
    BYTE_ORDER_MAGIC, ByteOrder, OptionCode, OptionScope, View, block_type, normalize_options, pad,
    put_option, take,
};

/// Type and length before the body, and length after it.
const FRAMING_SIZE: usize = 12;

/// Bytes are not a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BlockError {
    /// The slice ends before the block does.
    Incomplete {
        /// Bytes needed from the start of the block, as far as known.
        needed: usize,
    },
    /// The total length is below 12 or not a multiple of 4.
    Length {
        /// The total length found.
        total_len: u32,
    },
    /// The length after the body differs from the one before it.
    Trailer {
        /// Length before the body.
        leading: u32,
        /// Length after the body.
        trailing: u32,
    },
    /// The Section Header Block has no Byte-Order Magic.
    Magic {
        /// The bytes found in its place.
        found: [u8; 4],
    },
    /// The body is too short for the fields or lengths of its type.
    Body {
        /// Type of the block.
        block_type: u32,
    },
    /// The section's major version is not 1.
    Version {
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
    },
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { needed } => write!(f, "block is cut short; it needs {needed} bytes"),
            Self::Length { total_len } => {
                write!(f, "block length {total_len} is below 12 or not a multiple of 4")
            }
            Self::Trailer { leading, trailing } => {
                write!(f, "block length {leading} is repeated as {trailing} at the block's end")
            }
            Self::Magic { found } => {
                write!(f, "section header has no byte-order magic, but {found:02x?}")
            }
            Self::Body { block_type } => {
                write!(f, "block of type {block_type:#x} is too short for its contents")
            }
            Self::Version { major, minor } => {
                write!(f, "pcapng version {major}.{minor} is not supported")
            }
        }
    }
}

impl core::error::Error for BlockError {}

/// Type, length and byte order of a block, from its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// Block type.
    pub block_type: u32,
    /// Block total length: framing and body, a multiple of 4, at least 12.
    pub total_len: u32,
    /// The section's byte order: a Section Header Block names its own, others have that of the
    /// section.
    pub order: ByteOrder,
}

impl BlockHeader {
    /// Reads type and length from the first 8 bytes (12 of a Section Header Block), and checks the
    /// length.
    #[inline]
    pub fn read(bytes: &[u8], order: ByteOrder) -> Result<Self, BlockError> {
        let mut rest = bytes;
        let (Some(kind), Some(len)) = (take(&mut rest), take(&mut rest)) else {
            return Err(BlockError::Incomplete { needed: FRAMING_SIZE });
        };
        let block_type = order.u32(kind);
        let order = if block_type == block_type::SECTION_HEADER {
            match take(&mut rest).ok_or(BlockError::Incomplete { needed: FRAMING_SIZE })? {
                magic if magic == BYTE_ORDER_MAGIC.to_le_bytes() => ByteOrder::Little,
                magic if magic == BYTE_ORDER_MAGIC.to_be_bytes() => ByteOrder::Big,
                found => return Err(BlockError::Magic { found }),
            }
        } else {
            order
        };
        let total_len = order.u32(len);
        if total_len < 12 || !total_len.is_multiple_of(4) {
            return Err(BlockError::Length { total_len });
        }
        Ok(Self { block_type, total_len, order })
    }

    /// The block at the start of `bytes`, with its trailer's verdict apart: the body of a block
    /// whose trailing length is wrong may still hold a packet.
    #[inline]
    pub fn split<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Result<(Block<'a>, Result<(), BlockError>), BlockError> {
        let needed = self.size();
        let body_len = needed - FRAMING_SIZE;
        let (body, trailer) = bytes
            .get(8..needed)
            .and_then(|rest| rest.split_at_checked(body_len))
            .and_then(|(body, trailer)| Some((body, *trailer.first_chunk()?)))
            .ok_or(BlockError::Incomplete { needed })?;
        let trailing = self.order.u32(trailer);
        let block = Block { block_type: self.block_type, body, order: self.order };
        let verdict = if trailing == self.total_len {
            Ok(())
        } else {
            Err(BlockError::Trailer { leading: self.total_len, trailing })
        };
        Ok((block, verdict))
    }

    /// The total length in memory.
    pub fn size(&self) -> usize {
        usize::try_from(self.total_len).unwrap_or(usize::MAX)
    }
}

/// One block: its type and its body, without the framing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// Block type.
    pub block_type: u32,
    /// What lies between the two lengths.
    pub body: &'a [u8],
    /// Byte order of the section.
    pub order: ByteOrder,
}

impl<'a> Block<'a> {
    /// The typed contents.
    pub fn view(&self) -> Result<View<'a>, BlockError> {
        let Self { block_type, body, order } = *self;
        View::read(block_type, body, order).ok_or(BlockError::Body { block_type })
    }

    /// This Name Resolution or Decryption Secrets Block with its framing, in little endian; `None`
    /// for other types. What follows a damaged record or option is left out.
    pub fn to_little_endian(&self) -> Result<Option<Vec<u8>>, BlockError> {
        let mut body = Vec::with_capacity(self.body.len());
        let (scope, options) = match self.view()? {
            View::NameResolution(names) => {
                for (kind, value) in names.records() {
                    put_option(&mut body, kind, value);
                }
                // nrb_record_end has the form of opt_endofopt.
                put_option(&mut body, OptionCode::END, &[]);
                (OptionScope::NameResolution, names.options())
            }
            View::DecryptionSecrets(secrets) => {
                body.extend_from_slice(&secrets.secrets_type.to_le_bytes());
                let len = u32::try_from(secrets.secrets.len())
                    .map_err(|_| BlockError::Body { block_type: self.block_type })?;
                body.extend_from_slice(&len.to_le_bytes());
                body.extend_from_slice(secrets.secrets);
                pad(&mut body);
                (OptionScope::DecryptionSecrets, secrets.options)
            }
            _ => return Ok(None),
        };
        let options_start = body.len();
        normalize_options(scope, options, &mut body);
        if body.len() > options_start {
            put_end_of_options(&mut body);
        }
        let mut out = Vec::with_capacity(body.len() + FRAMING_SIZE);
        put_block(&mut out, self.block_type, |out| out.extend_from_slice(&body));
        Ok(Some(out))
    }
}

/// Walks the blocks of a slice: (offset of the block in the slice, block).
///
/// Section Header Blocks change the byte order for what follows them. After an error the walk ends,
/// because where the next block starts is not known.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    offset: usize,
    order: ByteOrder,
}

impl<'a> Blocks<'a> {
    /// The blocks of `bytes`, which starts at a block; `order` counts until a Section Header Block
    /// names another.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, offset: 0, order }
    }

    /// Offset behind the last block returned.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<(usize, Block<'a>), BlockError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let read = BlockHeader::read(self.bytes, self.order).and_then(|header| {
            let (block, verdict) = header.split(self.bytes)?;
            verdict.map(|()| (header.size(), block))
        });
        match read {
            Ok((size, block)) => {
                let offset = self.offset;
                self.order = block.order;
                self.offset += size;
                self.bytes = self.bytes.get(size..).unwrap_or_default();
                Some(Ok((offset, block)))
            }
            Err(error) => {
                self.bytes = &[];
                Some(Err(error))
            }
        }
    }
}
