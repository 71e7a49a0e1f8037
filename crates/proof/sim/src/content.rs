//! What the simulator stores: bodies that follow from a mark, so that any row can be checked
//! without keeping it.
//!
//! DATA bodies are pcapng: an interface in the first row, one packet in every row. A head that is
//! computed anew must count the same packets. One that is to be encrypted has padding at both ends.

use format::head::{ENTERPRISE_NUMBER, HEAD_BYTES, Kind, OPTION_CUSTOM_BINARY_NO_COPY};
use format::local::{LOCAL_FRAME_BYTES, fill_with_padding};
use format::piece::LEAD_BYTES;
use units::mix;

const INTERFACE_BYTES: usize = 44;
/// Block type, length, interface, two halves of a timestamp, two lengths.
const PACKET_HEADER_BYTES: usize = 28;
const TRAILER_BYTES: usize = 4;

/// Where a row lies, and what it was made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOf {
    pub(crate) kind: Kind,
    pub(crate) mark: u64,
    pub(crate) column: u8,
    pub(crate) row: u16,
    /// Rows of the body.
    pub(crate) rows: u16,
}

/// Set in the marks of bodies that are encrypted.
pub(crate) const ENCRYPTED: u64 = 1 << 63;

impl RowOf {
    /// Writes the row.
    pub(crate) fn fill(self, into: &mut [u8]) {
        let place = u64::from(self.column) << 32 | u64::from(self.row);
        let pattern = mix(self.mark ^ mix(place)).to_le_bytes();
        into.as_chunks_mut::<8>().0.fill(pattern);
        if self.kind == Kind::Data {
            self.frame(into);
        }
    }

    fn frame(self, row: &mut [u8]) {
        let is_encrypted = self.mark & ENCRYPTED != 0;
        let lead = if is_encrypted && self.row == 0 { LEAD_BYTES } else { 0 };
        let is_last = self.row + 1 == self.rows;
        let tail = if is_encrypted && is_last { LOCAL_FRAME_BYTES } else { 0 };
        let (padding, rest) = row.split_at_mut(lead);
        let (row, last) = rest.split_at_mut(rest.len() - tail);
        for padding in [padding, last].into_iter().filter(|padding| !padding.is_empty()) {
            fill_with_padding(padding);
        }
        let packet = if self.row == 0 {
            let (interface, packet) = row.split_at_mut(INTERFACE_BYTES);
            interface.copy_from_slice(&interface_block());
            packet
        } else {
            row
        };
        let block_len = u32::try_from(packet.len()).expect("a row");
        let captured = PACKET_HEADER_BYTES + TRAILER_BYTES;
        let captured = block_len - u32::try_from(captured).expect("a few bytes");
        let fields = [6, block_len, 0, 0, u32::from(self.row), captured, captured];
        put(packet, 0, &fields);
        let trailer = packet.len() - TRAILER_BYTES;
        put(packet, trailer, &[block_len]);
    }
}

fn interface_block() -> [u8; INTERFACE_BYTES] {
    let mut block = [0; INTERFACE_BYTES];
    let length = u32::try_from(INTERFACE_BYTES).expect("a few bytes");
    let option = u32::from(OPTION_CUSTOM_BINARY_NO_COPY) | 16 << 16;
    // Ethernet, the one snaplen, our option of kind 1 for interface 0, end of options.
    let fields = [1, length, 1, 262_144, option, ENTERPRISE_NUMBER, 1, 0, 0, 0, length];
    put(&mut block, 0, &fields);
    block
}

fn put(into: &mut [u8], offset: usize, fields: &[u32]) {
    for (place, field) in
        into.iter_mut().skip(offset).zip(fields.iter().flat_map(|field| field.to_le_bytes()))
    {
        *place = field;
    }
}

/// Fills the body of a column.
pub(crate) fn fill_body((kind, mark, column): (Kind, u64, u8), body: &mut [u8]) {
    let rows = u16::try_from(body.len() / HEAD_BYTES).expect("rows of a piece");
    for (row, bytes) in (0..rows).zip(body.chunks_exact_mut(HEAD_BYTES)) {
        RowOf { kind, mark, column, row, rows }.fill(bytes);
    }
}

/// Packets in a data column's body of so many rows.
pub(crate) fn packets_of(kind: Kind, rows: u16) -> u32 {
    if kind == Kind::Data { u32::from(rows) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_holds_the_packets_that_its_head_counts() {
        for (mark, rows) in [(7, 3), (7 | ENCRYPTED, 3), (7 | ENCRYPTED, 1)] {
            let mut body = vec![0; usize::from(rows) * HEAD_BYTES];
            fill_body((Kind::Data, mark, 1), &mut body);
            let packets: Vec<_> = format::piece::packets(&body).collect();
            assert!(packets.iter().all(Result::is_ok));
            assert_eq!(packets.len(), usize::try_from(packets_of(Kind::Data, rows)).unwrap());
        }
    }
}
