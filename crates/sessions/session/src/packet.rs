//! A packet as it comes to the table.

use format::session_row::PieceId;
use units::{InterfaceId, Sequence, Timestamp};
use wire::LinkType;

/// One packet as the table sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The interface it came from.
    pub interface: InterfaceId,
    /// The meaning of its first byte.
    pub link_type: LinkType,
    /// Bytes on the wire.
    pub original_len: u32,
    /// Bytes captured.
    pub data: &'a [u8],
    /// The piece it lies in.
    pub piece: PieceId,
    /// First byte of its block in the piece's body.
    pub begin: u32,
    /// End of its block.
    pub end: u32,
}

impl PacketView<'_> {
    /// Fills places that no packet has been put into yet.
    pub(crate) const NOTHING: Self = Self {
        timestamp: Timestamp(0),
        interface: InterfaceId(0),
        link_type: LinkType::ETHERNET,
        original_len: 0,
        data: &[],
        piece: PieceId { sequence: Sequence(0), sub: 0, column: 0 },
        begin: 0,
        end: 0,
    };
}
