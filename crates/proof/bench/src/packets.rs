//! Packets held in memory, as the session table takes them.

use std::path::Path;

use core::time::Duration;

use anyhow::Result;
use capture::{FileOptions, FileSource, Next, Source};
use format::session_row::PieceId;
use session::PacketView;
use units::number::to_u64;
use units::{InterfaceId, Sequence, Timestamp};
use wire::LinkType;

/// Packets of 64 bytes in a piece of 2 MiB: about how often the table sees a new piece.
const PIECE_PACKETS: usize = 20_000;
/// Bytes that each packet takes there, as far as anyone asks.
const BLOCK_BYTES: u32 = 96;

/// Packets one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// Inputs that broke off; what lay before is there.
    pub(crate) broken_off: usize,
}

/// Where one packet lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    timestamp: Timestamp,
    link_type: LinkType,
    original_len: u32,
    start: usize,
    end: usize,
}

impl Packets {
    /// All packets of a capture file, or of the captures below a directory.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut packets = Self::default();
        let mut source = FileSource::open(path, FileOptions { filter: None, snaplen: 0 })?;
        loop {
            match source.next_batch(Duration::ZERO) {
                Ok(Next::Packets(batch)) => {
                    let interfaces = batch.interfaces();
                    for packet in batch {
                        let id = usize::try_from(packet.interface)?;
                        let interface = interfaces.get(id).expect("a packet has an interface");
                        let tag = packet.tag.as_ref().map_or(&[][..], |tag| tag);
                        let parts = [packet.head, tag, packet.tail];
                        let lens = (packet.timestamp, packet.original_len);
                        packets.push(lens, interface.link_type, &parts);
                    }
                }
                Ok(Next::End) => return Ok(packets),
                Ok(Next::Block(_) | Next::Idle) => {}
                Err(_) => packets.broken_off += 1,
            }
        }
    }

    pub(crate) fn push(
        &mut self,
        (timestamp, original_len): (Timestamp, u32),
        link_type: LinkType,
        parts: &[&[u8]],
    ) {
        let start = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let end = self.bytes.len();
        self.places.push(Place { timestamp, link_type, original_len, start, end });
    }

    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// The packets, as if they lay in pieces of a volume.
    pub(crate) fn views(&self) -> Vec<PacketView<'_>> {
        self.views_from(0)
    }

    /// The same for pieces that begin with this number: behind those of other packets.
    pub(crate) fn views_from(&self, first_piece: usize) -> Vec<PacketView<'_>> {
        let within = |place| u32::try_from(place).expect("at most 20 000");
        let view = |(number, place): (usize, &Place)| PacketView {
            timestamp: place.timestamp,
            interface: InterfaceId(0),
            link_type: place.link_type,
            original_len: place.original_len,
            data: self.bytes.get(place.start..place.end).expect("a place lies in the bytes"),
            piece: PieceId {
                sequence: Sequence(to_u64(first_piece + number / PIECE_PACKETS)),
                sub: 0,
                column: 0,
            },
            begin: BLOCK_BYTES * within(number % PIECE_PACKETS),
            end: BLOCK_BYTES * within(number % PIECE_PACKETS + 1),
        };
        self.places.iter().enumerate().map(view).collect()
    }

    /// Pieces that they fill, the last one perhaps in part.
    pub(crate) fn piece_count(&self) -> usize {
        self.places.len().div_ceil(PIECE_PACKETS)
    }

    /// Each packet's timestamp and bytes, in an order that does not depend on where they lay.
    pub(crate) fn sorted(&self) -> Vec<(Timestamp, &[u8])> {
        let mut all: Vec<_> =
            self.views().iter().map(|packet| (packet.timestamp, packet.data)).collect();
        all.sort_unstable();
        all
    }
}
