//! A piece of packets: filling a column, sealing its body, and walking it again.
//!
//! A column is memory of one piece: the head's row, then a body of pcapng blocks. [`PieceBuilder`]
//! puts packets behind one another as Enhanced Packet Blocks, each interface's description in front
//! of its first packet, and ends the body with statistics and padding on a row boundary.
//! [`packets`] walks a body. Layout: docs/format.md, Body.
//!
//! Invariant: at any moment the bytes written, plus what [`PieceBuilder::finish`] will add, fit the
//! capacity; so finishing cannot fail.

use units::number::to_u64;
use units::{InterfaceId, Timestamp, start_of};
use wire::LinkType;

use crate::directory::Gap;
use crate::field::put;
use crate::head::{ENTERPRISE_NUMBER, HEAD_BYTES, Totals};
use crate::local::{LOCAL_FRAME_BYTES, fill_with_padding};
use crate::pcapng::{self, ByteOrder, OptionCode, Options, block_type};

mod frame;
mod own;
mod parts;
mod walk;

pub use frame::{Frame, LEAD_BYTES, restore_frame};
use own::{GAP_BYTES, OPTION_INTERFACE, OPTION_STATISTICS, put_gap};
pub use parts::PacketParts;
pub use walk::{
    InterfaceInPiece, Packets, PieceError, StoredPacket, interfaces_in_front, packets,
    packets_within,
};

/// Snap length written into every interface description: libpcap refuses a file whose interfaces
/// differ in it, and its own upper bound is this. The real one is in our option.
pub const SNAPLEN_WRITTEN: u32 = 262_144;

/// Longest frame that is stored; longer ones are truncated, flagged by their lengths, and counted.
pub const CAPTURED_LENGTH_MAX: usize = 262_144;

/// Enhanced Packet Block without data and options.
const PACKET_FRAME_BYTES: usize = 32;
/// Its fields: interface, both halves of the time, both lengths.
const PACKET_FIELDS_AT: usize = 8;
const PACKET_DATA_AT: usize = 28;
/// Statistics block with all our counters and no gaps.
const STATISTICS_BYTES: usize = 136;
/// Space kept for gaps in every piece.
const GAPS_RESERVED_BYTES: usize = PieceBuilder::GAPS_PER_PIECE * GAP_BYTES;

const ROW: usize = HEAD_BYTES;

/// An interface ready to be put in front of its first packet in a piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedInterface {
    /// Number of the interface in this epoch.
    pub id: InterfaceId,
    block: Vec<u8>,
}

/// Most bytes of what a recording is called.
pub const RECORDING_BYTES_MAX: usize = 256;

/// What an interface description is made of.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceFields<'a> {
    /// Number of the interface in this epoch.
    pub id: InterfaceId,
    /// Link type.
    pub link_type: LinkType,
    /// Real snap length; 0 keeps all.
    pub snaplen: u32,
    /// `if_name`.
    pub name: &'a str,
    /// What the recording is called; empty: nothing.
    pub recording: &'a str,
    /// Further interface options in little endian without `opt_endofopt`.
    pub options: &'a [u8],
}

impl EncodedInterface {
    /// Encodes the Interface Description Block: nanoseconds, the common snap length, and our option
    /// with the number, the real snap length and what the recording is called.
    ///
    /// A custom option of ours among the further ones is left out: it would be taken for the one
    /// that says the number.
    pub fn new(fields: &InterfaceFields<'_>) -> Self {
        let mut options = Vec::with_capacity(64 + fields.name.len() + fields.options.len());
        if !fields.name.is_empty() {
            let name = start_of(fields.name, pcapng::COMMENT_BYTES);
            pcapng::put_option(&mut options, OptionCode::INTERFACE_NAME, name.as_bytes());
        }
        pcapng::put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[9]);
        for option in Options::new(fields.options, ByteOrder::Little) {
            let is_ours = option.code == OptionCode::CUSTOM_BYTES_NO_COPY
                && option.value.starts_with(&ENTERPRISE_NUMBER.to_le_bytes());
            if !is_ours {
                pcapng::put_option(&mut options, option.code, option.value);
            }
        }
        let mut ours = ENTERPRISE_NUMBER.to_le_bytes().to_vec();
        ours.extend_from_slice(&[OPTION_INTERFACE, 0, 0, 0]);
        ours.extend_from_slice(&fields.id.get().to_le_bytes());
        ours.extend_from_slice(&fields.snaplen.to_le_bytes());
        ours.extend_from_slice(start_of(fields.recording, RECORDING_BYTES_MAX).as_bytes());
        pcapng::put_option(&mut options, OptionCode::CUSTOM_BYTES_NO_COPY, &ours);
        let mut block = Vec::new();
        let link_type = fields.link_type;
        pcapng::put_interface_description(&mut block, link_type, SNAPLEN_WRITTEN, &options);
        Self { id: fields.id, block }
    }

    /// Bytes of the description, which every piece with a packet of the interface has.
    pub fn len_bytes(&self) -> usize {
        self.block.len()
    }
}

/// Totals of one interface since the start of the epoch, as of the sealing of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Number of the interface in this epoch.
    pub interface: InterfaceId,
    /// Packets that arrived and passed the filter, losses in the kernel included.
    pub received: u64,
    /// Lost in NIC or driver; `None` is unknown.
    pub interface_drops: Option<u64>,
    /// Lost because no kernel ring block was free.
    pub kernel_drops: u64,
    /// Lost because no column was free.
    pub writer_drops: u64,
}

/// What lies in a column so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Number of packets.
    pub packets: u32,
    /// Captured bytes of those.
    pub captured_bytes: u64,
    /// Earliest; `Timestamp::MAX` without packets.
    pub time_min: Timestamp,
    /// Latest; `Timestamp::MIN` without packets.
    pub time_max: Timestamp,
    /// There are blocks that belong to no packet: name resolution, secrets.
    pub extra_blocks: bool,
}

impl Contents {
    /// The totals of a stripe with those of this piece, which comes with so many losses.
    #[must_use]
    pub fn added_to(&self, totals: Totals, losses: &Totals) -> Totals {
        Totals {
            packets: totals.packets + u64::from(self.packets),
            captured_bytes: totals.captured_bytes + self.captured_bytes,
            interface_drops: totals.interface_drops + losses.interface_drops,
            kernel_drops: totals.kernel_drops + losses.kernel_drops,
            writer_drops: totals.writer_drops + losses.writer_drops,
        }
    }
}

impl Default for Contents {
    fn default() -> Self {
        let (time_min, time_max) = (Timestamp::MAX, Timestamp::MIN);
        Self { packets: 0, captured_bytes: 0, time_min, time_max, extra_blocks: false }
    }
}

/// An interface in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceUse {
    /// Number of the interface in the epoch.
    pub id: InterfaceId,
    /// Packets of it in this piece.
    pub packets: u32,
}

/// Fills one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceBuilder {
    at: usize,
    capacity: usize,
    frame: Frame,
    /// Interfaces described so far, and their packets; their place is their number in this
    /// section.
    interfaces: Vec<InterfaceUse>,
    contents: Contents,
    /// Where in the body each packet's block begins.
    starts: Vec<u32>,
}

impl PieceBuilder {
    /// Gaps that one piece can hold.
    pub const GAPS_PER_PIECE: usize = 4;

    /// A builder for a column of `capacity` bytes, head included, that is not to be encrypted.
    ///
    /// # Panics
    /// When the capacity is not at least a head and three rows, in whole rows.
    pub fn new(capacity: usize) -> Self {
        Self::framed(capacity, Frame::Plain)
    }

    /// A builder for a column of which the body has this frame.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn framed(capacity: usize, frame: Frame) -> Self {
        assert!(
            capacity >= 4 * ROW && capacity.is_multiple_of(ROW),
            "a piece has at least three body rows"
        );
        let (interfaces, contents) = (Vec::new(), Contents::default());
        Self { at: ROW, capacity, frame, interfaces, contents, starts: Vec::new() }
    }

    /// Space that is not there for packets: in front of the first one, and behind those of so many
    /// interfaces.
    fn reserved(&self, interfaces: usize) -> usize {
        let in_front = if self.is_empty() { self.frame.lead_bytes() } else { 0 };
        in_front + reserve(interfaces) + self.frame.tail_bytes()
    }

    /// What comes before anything else.
    fn begin(&mut self, column: &mut [u8]) {
        if self.is_empty() {
            self.at += self.frame.put_lead(column.get_mut(ROW..).expect("it has a body"));
        }
    }

    /// The frame of its body.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// What the piece holds so far.
    pub fn contents(&self) -> Contents {
        self.contents
    }

    /// Whether nothing was put in yet.
    pub fn is_empty(&self) -> bool {
        self.at == ROW
    }

    /// Interfaces described in this piece.
    pub fn interfaces(&self) -> &[InterfaceUse] {
        &self.interfaces
    }

    /// Where in the body each packet's block begins, for [`Packets::with_starts`].
    pub fn into_starts(self) -> Vec<u32> {
        self.starts
    }

    /// Space for the captured bytes, padded to words, and the options of one packet of `interface`
    /// in an empty column of this capacity. Options take four bytes more than they are.
    pub fn packet_room(&self, interface: &EncodedInterface) -> usize {
        let empty = Self::framed(self.capacity, self.frame);
        let taken = ROW + interface.block.len() + empty.reserved(1) + PACKET_FRAME_BYTES;
        self.capacity.saturating_sub(taken) / 4 * 4
    }

    /// Longest packet without options that fits an empty column of this capacity behind
    /// `interface`.
    pub fn captured_len_max(&self, interface: &EncodedInterface) -> usize {
        CAPTURED_LENGTH_MAX.min(self.packet_room(interface))
    }

    /// Longest block (name resolution, secrets) that fits an empty column of this capacity.
    pub fn block_len_max(&self) -> usize {
        self.capacity.saturating_sub(ROW + Self::framed(self.capacity, self.frame).reserved(0))
    }

    /// Copies one packet into `column`; false, and nothing changed, when it does not fit any more.
    #[inline]
    pub fn push(
        &mut self,
        column: &mut [u8],
        interface: &EncodedInterface,
        packet: &PacketParts<'_>,
    ) -> bool {
        let local = self.interfaces.iter().position(|known| known.id == interface.id);
        let new_interface = if local.is_none() { interface.block.len() } else { 0 };
        let captured: usize = packet.parts.iter().map(|part| part.len()).sum();
        let options = if packet.options.is_empty() { 0 } else { packet.options.len() + 4 };
        let block = PACKET_FRAME_BYTES + captured.next_multiple_of(4) + options;
        let interfaces_after = self.interfaces.len() + usize::from(local.is_none());
        if self.at + new_interface + block + self.reserved(interfaces_after) > self.capacity {
            return false;
        }
        let local = local.unwrap_or_else(|| self.describe(column, interface));
        let space = column.get_mut(self.at..self.at + block).expect("the column has its capacity");
        write_packet(space, u32::try_from(local).expect("few interfaces"), packet, captured);
        self.starts.push(u32::try_from(self.at - ROW).expect("a piece is shorter than 4 GiB"));
        self.at += block;
        self.count(local, captured, packet.timestamp);
        true
    }

    /// Copies a whole block (name resolution, secrets) into `column`; false when it does not fit.
    ///
    /// # Panics
    /// When the block's length is no multiple of four.
    pub fn push_block(&mut self, column: &mut [u8], block: &[u8]) -> bool {
        assert!(block.len().is_multiple_of(4), "pcapng blocks are whole words");
        let fits = self.at + block.len() + self.reserved(self.interfaces.len()) <= self.capacity;
        if fits {
            self.begin(column);
            put(column, self.at, block);
            self.at += block.len();
            self.contents.extra_blocks = true;
        }
        fits
    }

    /// Describes an interface before any packet of it, so that losses can be stored where no packet
    /// was; false when it does not fit.
    pub fn push_interface(&mut self, column: &mut [u8], interface: &EncodedInterface) -> bool {
        let after = self.reserved(self.interfaces.len() + 1);
        let fits = self.at + interface.block.len() + after <= self.capacity;
        if fits && self.interfaces.iter().all(|known| known.id != interface.id) {
            self.describe(column, interface);
        }
        fits
    }

    fn describe(&mut self, column: &mut [u8], interface: &EncodedInterface) -> usize {
        self.begin(column);
        put(column, self.at, &interface.block);
        self.at += interface.block.len();
        self.interfaces.push(InterfaceUse { id: interface.id, packets: 0 });
        self.interfaces.len() - 1
    }

    fn count(&mut self, local: usize, captured: usize, timestamp: Timestamp) {
        self.interfaces.get_mut(local).expect("described before its packets").packets += 1;
        let contents = &mut self.contents;
        contents.packets += 1;
        contents.captured_bytes += to_u64(captured);
        contents.time_min = contents.time_min.min(timestamp);
        contents.time_max = contents.time_max.max(timestamp);
    }

    /// Body rows that [`PieceBuilder::finish`] would make, gaps included.
    pub fn rows(&self) -> u16 {
        let end = self.at + self.reserved(self.interfaces.len());
        to_rows(end.next_multiple_of(ROW).min(self.capacity) - ROW)
    }

    /// Ends the body: a statistics block for each interface of this piece, as many of `gaps` as
    /// there is space for (taken out of the list), and padding to `rows` rows, at least
    /// [`PieceBuilder::rows`]. Returns the number of body rows.
    pub fn finish(
        &mut self,
        column: &mut [u8],
        statistics: &[Statistics],
        gaps: &mut Vec<Gap>,
        rows: u16,
    ) -> u16 {
        let rows = rows.max(self.rows());
        let end = ROW * (1 + usize::from(rows));
        assert!(end <= self.capacity, "a piece does not outgrow its column");
        let realtime = self.contents.time_max;
        let mut blocks = Vec::with_capacity(reserve(self.interfaces.len()));
        let mut room = Self::GAPS_PER_PIECE;
        for (local, known) in self.interfaces.iter().enumerate() {
            let Some(totals) = statistics_of(statistics, known.id) else { continue };
            let mine = gaps.drain(..room.min(gaps.len())).collect::<Vec<_>>();
            room -= mine.len();
            let local = u32::try_from(local).expect("few interfaces");
            put_statistics(&mut blocks, local, realtime, totals, &mine);
        }
        self.begin(column);
        put(column, self.at, &blocks);
        self.at += blocks.len();
        let (padding, tail) = column
            .get_mut(self.at..end)
            .and_then(|rest| rest.split_at_mut_checked(rest.len() - self.frame.tail_bytes()))
            .expect("inside the column");
        fill_with_padding(padding);
        Frame::put_tail(tail);
        self.at = end;
        rows
    }

    /// Splits the piece at a packet boundary: what fits `rows` body rows stays, the rest is copied
    /// into `other`, whose builder is returned. `None`, and nothing changed, when not even one
    /// packet fits.
    ///
    /// # Panics
    /// When `other` is smaller than this piece's column.
    pub fn split(&mut self, column: &[u8], rows: u16, other: &mut [u8]) -> Option<Self> {
        let limit = ROW * (1 + usize::from(rows));
        let body = column.get(ROW..self.at).expect("inside the column");
        let mut kept = Self { at: ROW, capacity: limit, ..Self::framed(self.capacity, self.frame) };
        let mut rest = Self::framed(self.capacity, self.frame);
        let mut walk = packets(body);
        while let Some(stored) = walk.next() {
            let stored = stored.expect("a builder's own body is well formed");
            let described = stored.interfaces_before;
            let behind = reserve(described) + self.frame.tail_bytes();
            let fits = ROW + stored.end + behind <= limit;
            if fits && rest.is_empty() {
                kept.at = ROW + stored.end;
                let more = walk.interfaces().iter().skip(kept.interfaces.len());
                kept.interfaces.extend(more.map(|known| InterfaceUse { id: known.id, packets: 0 }));
                kept.count(stored.interface, stored.data.len(), stored.timestamp);
                let (start, _) = stored.span();
                kept.starts.push(start);
                continue;
            }
            let known =
                walk.interfaces().get(stored.interface).expect("described before its packets");
            let block = body.get(known.block.clone()).expect("inside the body").to_vec();
            let packet = stored.to_parts();
            let pushed = rest.push(other, &EncodedInterface { id: known.id, block }, &packet);
            assert!(pushed, "the rest of a piece fits a column of the same size");
        }
        // Name and secrets blocks behind the last kept packet would be lost: then the piece stays
        // whole.
        let blocks = walk.extra_blocks().count();
        if kept.contents.packets == 0 || rest.is_empty() || blocks > 0 {
            return None;
        }
        kept.capacity = self.capacity;
        *self = kept;
        Some(rest)
    }
}

/// Spreads the packets of some columns over `into`, in their order and about evenly: what a cut
/// does to columns that are not full. Returns a builder for each; `None`, and nothing of use in
/// `into`, when a column holds blocks that belong to no packet, or packets are so long that they do
/// not spread.
///
/// # Panics
/// When there are fewer columns in `into` than in `columns`, or smaller ones.
pub fn repack(
    columns: &[(&PieceBuilder, &[u8])],
    into: &mut [&mut [u8]],
) -> Option<Vec<PieceBuilder>> {
    assert!(into.len() >= columns.len() && !into.is_empty(), "there is space for everything");
    let total: usize = columns.iter().map(|(builder, _)| builder.at - ROW).sum();
    let share = total.div_ceil(into.len());
    let frame = columns.first().map_or(Frame::Plain, |(builder, _)| builder.frame);
    let mut builders: Vec<PieceBuilder> =
        into.iter().map(|column| PieceBuilder::framed(column.len(), frame)).collect();
    let mut place = 0;
    for (builder, column) in columns {
        let body = column.get(ROW..builder.at).expect("inside the column");
        let mut walk = packets(body);
        while let Some(stored) = walk.next() {
            let stored = stored.expect("a builder's own body is well formed");
            let known = walk.interfaces().get(stored.interface).expect("described before");
            let block = body.get(known.block.clone()).expect("inside the body").to_vec();
            let interface = EncodedInterface { id: known.id, block };
            let packet = stored.to_parts();
            while !push_into(&mut builders, into, place, (&interface, &packet)) {
                place += 1;
                if place == into.len() {
                    return None;
                }
            }
            let filled = builders.get(place).map_or(0, |builder| builder.at - ROW);
            if filled >= share && place + 1 < into.len() {
                place += 1;
            }
        }
        if walk.extra_blocks().next().is_some() {
            return None;
        }
        // Where a piece has nothing but losses, the interface must have its place.
        for known in walk.interfaces() {
            let block = body.get(known.block.clone()).expect("inside the body").to_vec();
            let interface = EncodedInterface { id: known.id, block };
            let builder = builders.get_mut(place).expect("a place in the list");
            let column = into.get_mut(place).expect("a place in the list");
            builder.push_interface(column, &interface);
        }
    }
    Some(builders)
}

/// Puts one block into a column and pads it to whole rows, at least `rows`; returns the body rows.
///
/// # Panics
/// When the block and a padding block do not fit.
pub fn fill_with_block(column: &mut [u8], block: &[u8], rows: u16) -> u16 {
    let end = ROW + block.len();
    put(column, ROW, block);
    let needed = (end + LOCAL_FRAME_BYTES).next_multiple_of(ROW);
    let rows_end = needed.max(ROW * (1 + usize::from(rows)));
    fill_with_padding(column.get_mut(end..rows_end).expect("parts leave space"));
    to_rows(rows_end - ROW)
}

fn push_into(
    builders: &mut [PieceBuilder],
    into: &mut [&mut [u8]],
    place: usize,
    (interface, packet): (&EncodedInterface, &PacketParts<'_>),
) -> bool {
    let builder = builders.get_mut(place).expect("as much space as before");
    let column = into.get_mut(place).expect("as many columns as builders");
    builder.push(column, interface, packet)
}

/// The totals of an interface; usually they lie at its number.
fn statistics_of(all: &[Statistics], interface: InterfaceId) -> Option<&Statistics> {
    all.get(interface.place())
        .filter(|totals| totals.interface == interface)
        .or_else(|| all.iter().find(|totals| totals.interface == interface))
}

/// Space for what [`PieceBuilder::finish`] adds behind the packets of `interfaces` interfaces.
fn reserve(interfaces: usize) -> usize {
    interfaces * STATISTICS_BYTES + GAPS_RESERVED_BYTES + LOCAL_FRAME_BYTES
}

fn to_rows(bytes: usize) -> u16 {
    u16::try_from(bytes / ROW).expect("a piece has at most 511 body rows")
}

/// Enhanced Packet Block (pcapng, section 4.3) into exactly `space`.
#[inline]
fn write_packet(space: &mut [u8], local: u32, packet: &PacketParts<'_>, captured: usize) {
    let length = u32::try_from(space.len()).expect("a block is shorter than a piece").to_le_bytes();
    let nanos = packet.timestamp.0.cast_unsigned();
    let high = u32::try_from(nanos >> 32).expect("32 bits are left");
    let low = u32::try_from(nanos & u64::from(u32::MAX)).expect("32 bits are left");
    let captured_len = u32::try_from(captured).expect("a packet is shorter than a piece");
    let fields = [local, high, low, captured_len, packet.original_len].map(u32::to_le_bytes);
    let padded = PACKET_DATA_AT + captured.next_multiple_of(4);
    // First, for the packet's last bytes come over it, or the fields where there are none.
    put(space, padded - 4, &[0; 4]);
    put(space, 0, &block_type::ENHANCED_PACKET.to_le_bytes());
    put(space, 4, &length);
    put(space, PACKET_FIELDS_AT, fields.as_flattened());
    let mut at = PACKET_DATA_AT;
    for part in packet.parts.iter().filter(|part| !part.is_empty()) {
        put(space, at, part);
        at += part.len();
    }
    if !packet.options.is_empty() {
        put(space, padded, packet.options);
        put(space, padded + packet.options.len(), &[0; 4]);
    }
    let trailer = space.len() - 4;
    put(space, trailer, &length);
}

/// Interface Statistics Block (pcapng, section 4.6); our option holds what pcapng has no field for.
fn put_statistics(
    out: &mut Vec<u8>,
    local: u32,
    time: Timestamp,
    totals: &Statistics,
    gaps: &[Gap],
) {
    let mut options = Vec::new();
    let mut counter = |code, value: u64| {
        pcapng::put_option(&mut options, code, &value.to_le_bytes());
    };
    counter(OptionCode::STATISTICS_RECEIVED, totals.received);
    if let Some(drops) = totals.interface_drops {
        counter(OptionCode::STATISTICS_INTERFACE_DROPS, drops);
    }
    counter(OptionCode::STATISTICS_KERNEL_DROPS, totals.kernel_drops);
    let lost = totals.kernel_drops + totals.writer_drops;
    counter(OptionCode::STATISTICS_DELIVERED, totals.received.saturating_sub(lost));
    let mut ours = ENTERPRISE_NUMBER.to_le_bytes().to_vec();
    let gap_count = u8::try_from(gaps.len()).expect("few gaps a piece");
    ours.extend_from_slice(&[OPTION_STATISTICS, gap_count, 0, 0]);
    ours.extend_from_slice(&totals.writer_drops.to_le_bytes());
    for gap in gaps {
        put_gap(&mut ours, gap);
    }
    pcapng::put_option(&mut options, OptionCode::CUSTOM_BYTES_NO_COPY, &ours);
    let before = out.len();
    pcapng::put_interface_statistics(out, local, time.0.cast_unsigned(), &options);
    let size = out.len() - before;
    assert!(size <= STATISTICS_BYTES + gaps.len() * GAP_BYTES, "statistics fit their reserve");
}

#[cfg(test)]
mod tests;
