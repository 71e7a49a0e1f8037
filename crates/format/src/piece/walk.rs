//! Walking a body: packets in the order stored, interfaces and statistics on the way.

use core::ops::Range;

use thiserror::Error;
use units::Timestamp;
use wire::LinkType;

use super::{GAP_BYTES, OPTION_INTERFACE, OPTION_STATISTICS, PacketParts, get_gap};
use crate::directory::Gap;
use crate::field::get_u32;
use crate::head::ENTERPRISE_NUMBER;
use crate::pcapng::{Block, Blocks, ByteOrder, OptionCode, Options, View, block_type};

/// The bytes of a verified body are not what a builder makes: a programmer error of the writer, or
/// a forged piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("block at byte {offset} of the body is malformed")]
pub struct PieceError {
    /// Offset in the body.
    pub offset: usize,
}

/// An interface as a piece describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceInPiece {
    /// Number of the interface in its epoch.
    pub id: u32,
    /// Link type.
    pub link_type: LinkType,
    /// `if_name`.
    pub name: String,
    /// Real snap length; 0 keeps all.
    pub snaplen: u32,
    /// The Interface Description Block, framing included, as bytes of the body.
    pub block: Range<usize>,
}

/// One packet of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredPacket<'a> {
    /// Position among the packets of the piece, from 0.
    pub ordinal: u32,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Place of its interface in [`Packets::interfaces`].
    pub interface: usize,
    /// Bytes on the wire.
    pub original_len: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// pcapng options, little endian, `opt_endofopt` included; usually none.
    pub options: &'a [u8],
    /// Interfaces described before this packet.
    pub interfaces_before: usize,
    /// End of its block in the body.
    pub end: usize,
}

impl<'a> StoredPacket<'a> {
    /// The same as it is put into a column.
    pub fn to_parts(&self) -> PacketParts<'a> {
        let options = self.options.len().saturating_sub(4);
        PacketParts {
            timestamp: self.timestamp,
            original_len: self.original_len,
            parts: [self.data, &[], &[]],
            options: self.options.get(..options).expect("shorter than itself"),
        }
    }
}

/// Packets whose headers are read ahead at a time: about as many as a core waits for at once.
const AHEAD: u32 = 32;

/// Iterator over the packets of a body.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    body: &'a [u8],
    blocks: Blocks<'a>,
    interfaces: Vec<InterfaceInPiece>,
    gaps: Vec<Gap>,
    extra_blocks: Vec<Range<usize>>,
    ordinal: u32,
    starts: &'a [u32],
}

/// Walks a body, which is the bytes behind the head, verified by the caller.
pub fn packets(body: &[u8]) -> Packets<'_> {
    Packets {
        body,
        blocks: Blocks::new(body, ByteOrder::Little),
        interfaces: Vec::new(),
        gaps: Vec::new(),
        extra_blocks: Vec::new(),
        ordinal: 0,
        starts: &[],
    }
}

impl<'a> Packets<'a> {
    /// Walks faster by knowing where the blocks of the packets begin: they are read ahead of the
    /// walk, many at once, where it would wait for each to tell where the next one lies. Only a
    /// hint: wrong numbers change nothing but the speed.
    #[must_use]
    pub fn with_starts(self, starts: &'a [u32]) -> Self {
        let mut walk = Self { starts, ..self };
        walk.warm();
        walk
    }

    /// Reads something of each cache line that holds headers of the next packets.
    #[inline]
    fn warm(&mut self) {
        // The end of the block before, then link, network and transport headers.
        const LINES: [usize; 3] = [0, 48, 92];
        let ahead = usize::try_from(AHEAD).expect("a small number");
        let (next, rest) = self.starts.split_at(self.starts.len().min(ahead));
        self.starts = rest;
        let mut read = 0;
        for start in next.iter().filter_map(|&start| usize::try_from(start).ok()) {
            for line in LINES {
                let at = (start + line).saturating_sub(4);
                read ^= self.body.get(at).copied().unwrap_or_default();
            }
        }
        core::hint::black_box(read);
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.body.len()
    }

    /// Interfaces described so far.
    pub fn interfaces(&self) -> &[InterfaceInPiece] {
        &self.interfaces
    }

    /// Gaps named so far; complete when the iterator has ended.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Name resolution and secrets blocks passed so far, framing included.
    pub fn extra_blocks(&self) -> impl Iterator<Item = &'a [u8]> {
        let body = self.body;
        self.extra_blocks.iter().filter_map(move |range| body.get(range.clone()))
    }

    fn note(&mut self, offset: usize, block: &Block<'a>) -> Option<()> {
        let end = self.blocks.offset();
        match block.view().ok()? {
            View::InterfaceDescription(description) => {
                let options = description.options;
                let name = options.find_value(OptionCode::INTERFACE_NAME).unwrap_or_default();
                let ours = our_option(options.clone(), OPTION_INTERFACE)?;
                self.interfaces.push(InterfaceInPiece {
                    id: get_u32(ours.get(4..12)?, 0),
                    link_type: description.link_type,
                    name: String::from_utf8_lossy(name).into_owned(),
                    snaplen: get_u32(ours.get(4..12)?, 4),
                    block: offset..end,
                });
            }
            View::InterfaceStatistics(statistics) => {
                let ours = our_option(statistics.options, OPTION_STATISTICS)?;
                let gaps = ours.get(12..)?.as_chunks::<GAP_BYTES>().0;
                self.gaps.extend(gaps.iter().filter_map(get_gap));
            }
            View::NameResolution(_) | View::DecryptionSecrets(_) => {
                self.extra_blocks.push(offset..end);
            }
            _ => {}
        }
        Some(())
    }

    fn packet(&mut self, block: &Block<'a>) -> Option<StoredPacket<'a>> {
        let (fields, rest) = block.body.split_at_checked(20)?;
        let high = u64::from(get_u32(fields, 4));
        let low = u64::from(get_u32(fields, 8));
        let captured = usize::try_from(get_u32(fields, 12)).ok()?;
        let interface = usize::try_from(get_u32(fields, 0)).ok()?;
        if interface >= self.interfaces.len() {
            return None;
        }
        let ordinal = self.ordinal;
        self.ordinal += 1;
        if self.ordinal.is_multiple_of(AHEAD) && !self.starts.is_empty() {
            self.warm();
        }
        Some(StoredPacket {
            ordinal,
            timestamp: Timestamp((high << 32 | low).cast_signed()),
            interface,
            original_len: get_u32(fields, 16),
            data: rest.get(..captured)?,
            options: rest.get(captured.next_multiple_of(4)..)?,
            interfaces_before: self.interfaces.len(),
            end: self.blocks.offset(),
        })
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<StoredPacket<'a>, PieceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let offset = self.blocks.offset();
            let Ok((_, block)) = self.blocks.next()? else {
                return Some(Err(PieceError { offset }));
            };
            if block.block_type == block_type::ENHANCED_PACKET {
                return Some(self.packet(&block).ok_or(PieceError { offset }));
            }
            if self.note(offset, &block).is_none() {
                return Some(Err(PieceError { offset }));
            }
        }
    }
}

/// Contents of our custom option of the given kind, behind the enterprise number.
fn our_option(options: Options<'_>, kind: u8) -> Option<&[u8]> {
    options
        .filter(|option| option.code == OptionCode::CUSTOM_BYTES_NO_COPY)
        .filter_map(|option| option.value.strip_prefix(&ENTERPRISE_NUMBER.to_le_bytes()))
        .find(|ours| ours.first() == Some(&kind))
}

/// Writer drops of an interface in our statistics option.
#[cfg(test)]
pub(super) fn writer_drops(options: Options<'_>) -> Option<u64> {
    Some(crate::field::get_u64(our_option(options, OPTION_STATISTICS)?.get(4..12)?, 0))
}
