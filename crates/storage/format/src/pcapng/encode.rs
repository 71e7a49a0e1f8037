//! Blocks and options in little endian, appended to a vector.
//!
//! The vector's length is a multiple of 4 before and after each call, so that padding can be
//! counted from its start.

use units::start_of;
use wire::LinkType;

use super::options::put_option;
use super::{BYTE_ORDER_MAGIC, OptionCode, block_type, pad};

/// Longest comment written: an option's value is shorter than 64 KiB.
pub const COMMENT_BYTES: usize = 60_000;

/// The fixed fields and options of an Enhanced Packet Block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnhancedPacketFields<'a> {
    /// Number of the interface in the section.
    pub interface: u32,
    /// Time in the interface's units.
    pub time: u64,
    /// Length on the wire.
    pub original_len: u32,
    /// Options in little endian without `opt_endofopt`, which is added where there are any.
    pub options: &'a [u8],
}

/// Appends a block around the body that `put_body` appends; the body is padded to 32 bits.
///
/// # Panics
/// The vector does not end at a multiple of 4, or the block would reach 4 GiB.
pub fn put_block(out: &mut Vec<u8>, block_type: u32, put_body: impl FnOnce(&mut Vec<u8>)) {
    assert!(out.len().is_multiple_of(4), "blocks start at multiples of 4");
    let start = out.len();
    out.extend_from_slice(&block_type.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    put_body(out);
    pad(out);
    let total = u32::try_from(out.len() + 4 - start).expect("a block is shorter than 4 GiB");
    let length = out.get_mut(start + 4..start + 8).expect("the length has its place");
    length.copy_from_slice(&total.to_le_bytes());
    out.extend_from_slice(&total.to_le_bytes());
}

/// Appends a Section Header Block of unknown section length.
pub fn put_section_header(out: &mut Vec<u8>, options: &[u8]) {
    put_block(out, block_type::SECTION_HEADER, |out| {
        out.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend_from_slice(&1_u16.to_le_bytes());
        out.extend_from_slice(&0_u16.to_le_bytes());
        out.extend_from_slice(&u64::MAX.to_le_bytes());
        put_options(out, options);
    });
}

/// Appends the header of a section that we write, which says in a comment what it is.
pub fn put_own_section_header(out: &mut Vec<u8>, comment: &str) {
    let mut options = Vec::new();
    put_comment(&mut options, comment);
    put_option(&mut options, OptionCode::SECTION_USER_APPLICATION, b"wirespool");
    put_section_header(out, &options);
}

/// Appends an Interface Description Block; `snaplen` 0 means no limit.
pub fn put_interface_description(
    out: &mut Vec<u8>,
    link_type: LinkType,
    snaplen: u32,
    options: &[u8],
) {
    put_block(out, block_type::INTERFACE_DESCRIPTION, |out| {
        out.extend_from_slice(&link_type.0.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&snaplen.to_le_bytes());
        put_options(out, options);
    });
}

/// Appends an Enhanced Packet Block whose packet data are `parts` one after the other.
///
/// # Panics
/// As [`put_block`].
pub fn put_enhanced_packet(
    out: &mut Vec<u8>,
    fields: &EnhancedPacketFields<'_>,
    parts: [&[u8]; 3],
) {
    put_block(out, block_type::ENHANCED_PACKET, |out| {
        let captured: usize = parts.iter().map(|part| part.len()).sum();
        let captured = u32::try_from(captured).expect("a packet is shorter than 4 GiB");
        out.extend_from_slice(&fields.interface.to_le_bytes());
        put_time(out, fields.time);
        out.extend_from_slice(&captured.to_le_bytes());
        out.extend_from_slice(&fields.original_len.to_le_bytes());
        for part in parts {
            out.extend_from_slice(part);
        }
        pad(out);
        put_options(out, fields.options);
    });
}

/// Appends an Interface Statistics Block taken at `time`, in the interface's units.
pub fn put_interface_statistics(out: &mut Vec<u8>, interface: u32, time: u64, options: &[u8]) {
    put_block(out, block_type::INTERFACE_STATISTICS, |out| {
        out.extend_from_slice(&interface.to_le_bytes());
        put_time(out, time);
        put_options(out, options);
    });
}

/// Appends a comment; one that is longer than [`COMMENT_BYTES`] is cut at a character.
pub fn put_comment(out: &mut Vec<u8>, comment: &str) {
    put_option(out, OptionCode::COMMENT, start_of(comment, COMMENT_BYTES).as_bytes());
}

/// Appends `opt_endofopt`.
pub fn put_end_of_options(out: &mut Vec<u8>) {
    put_option(out, OptionCode::END, &[]);
}

fn put_options(out: &mut Vec<u8>, options: &[u8]) {
    if !options.is_empty() {
        out.extend_from_slice(options);
        put_end_of_options(out);
    }
}

/// A timestamp: the upper 32 bits, then the lower ones.
fn put_time(out: &mut Vec<u8>, time: u64) {
    let [b0, b1, b2, b3, b4, b5, b6, b7] = time.to_le_bytes();
    out.extend_from_slice(&[b4, b5, b6, b7, b0, b1, b2, b3]);
}
