//! Pieces of which a few rows are enough: those that hold what is wanted, and the first, which
//! describes the interfaces.
//!
//! Every row is verified by its own checksum. What does not work out this way is read whole: pieces
//! that are damaged or wanted nearly whole, packets of interfaces that are described later, pieces
//! with name resolution or secrets blocks, of which some may belong to the packets.

use core::ops::Range;
use std::collections::BTreeMap;

use format::head::{HEAD_BYTES, Head, Kind, StripeId};
use format::piece::{InterfaceInPiece, StoredPacket, interfaces_in_front, packets_within};
use format::session_row::PieceId;
use volume::{PieceRows, RowsWanted};

use crate::archive::Archive;
use crate::matching::PieceMatch;

/// A piece that is wanted to a larger part is read whole: 512 KiB.
const ROWS_MAX: usize = 128;

/// Rows of a piece, with the packets in the ranges that were asked for.
pub(crate) struct RowRead {
    rows: PieceRows,
    interfaces: Vec<InterfaceInPiece>,
    /// Bytes of the body, ascending.
    ranges: Vec<Range<usize>>,
}

/// A packet, and its block.
pub(crate) type PacketInRow<'a> = (StoredPacket<'a>, &'a [u8]);

impl RowRead {
    pub(crate) fn head(&self) -> &Head {
        &self.rows.head
    }

    /// The interfaces of the packets.
    pub(crate) fn interfaces(&self) -> &[InterfaceInPiece] {
        &self.interfaces
    }

    /// The first rows of the body, which describe the interfaces.
    pub(crate) fn front(&self) -> &[u8] {
        self.rows.runs.first().map_or(&[], |(_, bytes)| bytes)
    }

    /// Bytes of the rows.
    pub(crate) fn len_bytes(&self) -> usize {
        self.rows.runs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + HEAD_BYTES
    }

    /// The packets in the ranges, in their order; `None` when the bytes are anything else.
    pub(crate) fn packets(&self) -> Option<Vec<PacketInRow<'_>>> {
        let mut all = Vec::new();
        // One list for all ranges: both may be long.
        let mut interfaces = self.interfaces.clone();
        for range in &self.ranges {
            let bytes = self.bytes(range)?;
            let mut walk = packets_within(bytes, range.start, interfaces);
            for packet in walk.by_ref() {
                let packet = packet.ok()?;
                let block = bytes.get(packet.begin - range.start..packet.end - range.start)?;
                all.push((packet, block));
            }
            interfaces = walk.into_interfaces();
        }
        Some(all)
    }

    fn bytes(&self, range: &Range<usize>) -> Option<&[u8]> {
        self.rows.runs.iter().find_map(|(first, bytes)| {
            let begin = usize::from(*first) * HEAD_BYTES;
            bytes.get(range.start.checked_sub(begin)?..range.end.checked_sub(begin)?)
        })
    }
}

/// Reads what is wanted of those of the pieces where that is worth it and possible.
pub(crate) fn read<'p>(
    archive: &Archive,
    pieces: impl Iterator<Item = (&'p PieceId, &'p PieceMatch)>,
) -> BTreeMap<PieceId, RowRead> {
    let mut wanted = Vec::new();
    let mut ranges = Vec::new();
    for (&piece, of_piece) in pieces {
        let of_piece = of_piece.ranges();
        if let Some(rows) = rows_of(&of_piece) {
            let PieceId { sequence, sub, column } = piece;
            wanted.push(RowsWanted { stripe: StripeId { sequence, sub }, column, rows });
            ranges.push((piece, of_piece));
        }
    }
    let read = archive.reader.rows(&wanted).into_iter().zip(ranges);
    let read_rows =
        read.filter_map(|(rows, (piece, ranges))| Some((piece, row_read(rows?, &ranges)?)));
    read_rows.collect()
}

fn row_read(rows: PieceRows, ranges: &[Range<u32>]) -> Option<RowRead> {
    let stripe = &rows.head.stripe;
    if stripe.kind != Kind::Data || stripe.extra_blocks {
        return None;
    }
    let ranges = ranges.iter().map(|range| to_usize(range.start)..to_usize(range.end)).collect();
    let mut read = RowRead { rows, interfaces: Vec::new(), ranges };
    read.interfaces = interfaces_in_front(read.front());
    read.packets().is_some().then_some(read)
}

/// The first row and those that hold the ranges, ascending; `None` when they are many, or a range
/// is none.
fn rows_of(ranges: &[Range<u32>]) -> Option<Vec<Range<u16>>> {
    let mut rows: Vec<Range<u16>> = Vec::from([Range { start: 0, end: 1 }]);
    for range in ranges {
        let begin = u16::try_from(to_usize(range.start) / HEAD_BYTES).ok()?;
        let end = u16::try_from(to_usize(range.end).div_ceil(HEAD_BYTES)).ok()?;
        match rows.last_mut() {
            _ if range.is_empty() => return None,
            Some(last) if begin <= last.end => last.end = last.end.max(end),
            _ => rows.push(begin..end),
        }
    }
    let count: usize = rows.iter().map(ExactSizeIterator::len).sum();
    (count <= ROWS_MAX).then_some(rows)
}

fn to_usize(offset: u32) -> usize {
    usize::try_from(offset).expect("addresses have at least 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_first_and_those_of_the_ranges_unless_they_are_many() {
        let check = |ranges: &[(u32, u32)], expect: Option<&[(u16, u16)]>| {
            let ranges: Vec<Range<u32>> = ranges.iter().map(|&(start, end)| start..end).collect();
            let rows = rows_of(&ranges);
            let pairs = rows.map(|rows| rows.iter().map(|run| (run.start, run.end)).collect());
            assert_eq!(pairs, expect.map(<[_]>::to_vec), "{ranges:?}");
        };
        check(&[], Some(&[(0, 1)]));
        check(&[(100, 200), (4000, 4100)], Some(&[(0, 2)]));
        check(&[(4096, 8192)], Some(&[(0, 2)]));
        check(&[(8192, 8196), (40_960, 45_060)], Some(&[(0, 1), (2, 3), (10, 12)]));
        check(&[(8192, 8192)], None);
        check(&[(4096, 1 << 19)], Some(&[(0, 128)]));
        check(&[(4096, (1 << 19) + 4)], None);
    }
}
