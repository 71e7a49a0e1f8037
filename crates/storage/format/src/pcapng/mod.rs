//! pcapng blocks (draft-ietf-opsawg-pcapng), decoded by reference in both byte orders and encoded
//! in little endian.
//!
//! [`Blocks`] walks the blocks of a byte slice; [`Block::view`] gives their typed contents. Nothing
//! is copied: views borrow the slice, numbers are read when asked for. Two exceptions allocate,
//! because they change bytes: [`normalize_options`] and [`Block::to_little_endian`].
//!
//! Sizes in the bytes are never trusted: what does not fit ends in a [`BlockError`], never in a
//! panic. Which packets of a damaged file are kept, and how a file is read, is decided in
//! `capture`; this crate sees only slices.

mod block;
mod encode;
mod options;
mod resolution;
#[cfg(test)]
mod tests;
mod view;

pub use block::{Block, BlockError, BlockHeader, Blocks};
pub use encode::{
    COMMENT_BYTES, EnhancedPacketFields, put_block, put_comment, put_end_of_options,
    put_enhanced_packet, put_interface_description, put_interface_statistics,
    put_own_section_header, put_section_header,
};
pub use options::{
    OptionCode, OptionScope, Options, RawOption, normalize_options, normalize_options_where,
    put_option,
};
pub use resolution::Resolution;
pub use view::{
    DecryptionSecrets, EnhancedPacket, InterfaceDescription, InterfaceStatistics, NameRecords,
    NameResolution, PacketBlock, SectionHeader, SimplePacket, View,
};

/// Block types (section 11.1 of the draft, "Standardized Block Type Codes").
pub mod block_type {
    /// Section Header Block; reads the same in both byte orders.
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    /// Interface Description Block.
    pub const INTERFACE_DESCRIPTION: u32 = 1;
    /// Packet Block, obsolete.
    pub const PACKET: u32 = 2;
    /// Simple Packet Block.
    pub const SIMPLE_PACKET: u32 = 3;
    /// Name Resolution Block.
    pub const NAME_RESOLUTION: u32 = 4;
    /// Interface Statistics Block.
    pub const INTERFACE_STATISTICS: u32 = 5;
    /// Enhanced Packet Block.
    pub const ENHANCED_PACKET: u32 = 6;
    /// Decryption Secrets Block.
    pub const DECRYPTION_SECRETS: u32 = 10;
    /// Custom Block that a tool may copy.
    pub const CUSTOM: u32 = 0x0000_0bad;
    /// Custom Block that a tool must not copy.
    pub const CUSTOM_NO_COPY: u32 = 0x4000_0bad;
}

/// Byte-Order Magic of the Section Header Block.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Byte order of a section, or of a pcap file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Reads 16 bits.
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Reads 32 bits.
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads 64 bits.
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// Bytes up to the next multiple of four: blocks and options are padded to 32 bits.
pub(crate) const fn padding(len: usize) -> usize {
    len.wrapping_neg() % 4
}

/// Pads with zeros to 32 bits, counted from the start.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len() + padding(out.len()), 0);
}

/// Takes the first `N` bytes off `bytes`.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}
