//! A packet that is to be stored.

use units::Timestamp;

/// One packet to be stored: the frame is the parts one after the other.
#[derive(Clone, Copy, Debug)]
pub struct PacketParts<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Bytes on the wire.
    pub original_len: u32,
    /// The captured bytes; a VLAN tag that the kernel took off goes back as the middle part.
    pub parts: [&'a [u8]; 3],
    /// pcapng options in little endian without `opt_endofopt`, usually none.
    pub options: &'a [u8],
}
