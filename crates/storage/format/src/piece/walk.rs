//! Walking a body: packets in the order stored, interfaces and statistics on the way.

use core::ops::Range;

use thiserror::Error;
use units::{InterfaceId, Timestamp};
use wire::LinkType;

use super::own::{GAP_BYTES, OPTION_INTERFACE, OPTION_STATISTICS, get_gap};
use super::parts::PacketParts;
use crate::directory::Gap;
use crate::field::get_u32;
use crate::head::ENTERPRISE_NUMBER;
use crate::local::LOCAL_PADDING;
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
    pub id: InterfaceId,
    /// Link type.
    pub link_type: LinkType,
    /// `if_name`.
    pub name: String,
    /// Real snap length; 0 keeps all.
    pub snaplen: u32,
    /// What the recording is called.
    pub recording: Option<String>,
    /// The Interface Description Block, framing included, as bytes of the body.
    pub block: Range<usize>,
}

/// One packet of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredPacket<'a> {
    /// First byte of its block in the body.
    pub begin: usize,
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
    /// Its block in the body, from its first byte to its end, as rows have it.
    pub fn span(&self) -> (u32, u32) {
        let within = |offset| u32::try_from(offset).expect("a body has at most 2 MiB");
        (within(self.begin), within(self.end))
    }

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
    /// Packets so far.
    count: u32,
    starts: &'a [u32],
    /// Where the bytes begin in their body.
    begin: usize,
    /// The bytes are a part of a body, and the interfaces are known.
    is_part: bool,
}

/// The interfaces that a body describes in front of anything else, from its first bytes.
pub fn interfaces_in_front(front: &[u8]) -> Vec<InterfaceInPiece> {
    let mut walk = packets(front);
    loop {
        let offset = walk.blocks.offset();
        match walk.blocks.next() {
            Some(Ok((_, block))) if block.block_type == LOCAL_PADDING => {}
            Some(Ok((_, block))) if block.block_type == block_type::INTERFACE_DESCRIPTION => {
                if walk.note(offset, &block).is_none() {
                    return walk.interfaces;
                }
            }
            _ => return walk.interfaces,
        }
    }
}

/// Walks a part of a body that begins with the block of a packet, at the byte `begin` of the body.
/// `known` are the interfaces in front of the body; packets of others are errors. Blocks that are
/// no packets are passed over.
pub fn packets_within(bytes: &[u8], begin: usize, known: Vec<InterfaceInPiece>) -> Packets<'_> {
    Packets { interfaces: known, begin, is_part: true, ..packets(bytes) }
}

/// Walks a body, which is the bytes behind the head, verified by the caller.
pub fn packets(body: &[u8]) -> Packets<'_> {
    Packets {
        body,
        blocks: Blocks::new(body, ByteOrder::Little),
        interfaces: Vec::new(),
        gaps: Vec::new(),
        extra_blocks: Vec::new(),
        count: 0,
        starts: &[],
        begin: 0,
        is_part: false,
    }
}

impl<'a> Packets<'a> {
    /// Walks faster by knowing where the blocks of the packets begin: they are read ahead of the
    /// walk, many at once, where it would wait for each to say where the next one lies. Only a
    /// hint: wrong numbers change nothing but the speed.
    #[must_use]
    pub fn with_starts(self, starts: &'a [u32]) -> Self {
        let mut walk = Self { starts, ..self };
        walk.warm();
        walk
    }

    /// Reads something of each cache line that holds headers of the next packets.
    #[inline(never)]
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

    /// The same, for another walk of the same piece.
    pub fn into_interfaces(self) -> Vec<InterfaceInPiece> {
        self.interfaces
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

    #[cold]
    fn note(&mut self, offset: usize, block: &Block<'a>) -> Option<()> {
        let end = self.blocks.offset();
        match block.view().ok()? {
            View::InterfaceDescription(description) => {
                let options = description.options;
                let name = options.find_value(OptionCode::INTERFACE_NAME).unwrap_or_default();
                let ours = our_option(options.clone(), OPTION_INTERFACE)?;
                self.interfaces.push(InterfaceInPiece {
                    id: InterfaceId(get_u32(ours.get(4..12)?, 0)),
                    link_type: description.link_type,
                    name: String::from_utf8_lossy(name).into_owned(),
                    snaplen: get_u32(ours.get(4..12)?, 4),
                    recording: text(ours.get(12..)?),
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

    #[inline]
    fn packet(&mut self, begin: usize, block: &Block<'a>) -> Option<StoredPacket<'a>> {
        let (fields, rest) = block.body.split_at_checked(20)?;
        let high = u64::from(get_u32(fields, 4));
        let low = u64::from(get_u32(fields, 8));
        let captured = usize::try_from(get_u32(fields, 12)).ok()?;
        let interface = usize::try_from(get_u32(fields, 0)).ok()?;
        if interface >= self.interfaces.len() {
            return None;
        }
        self.count += 1;
        if self.count.is_multiple_of(AHEAD) && !self.starts.is_empty() {
            self.warm();
        }
        Some(StoredPacket {
            begin,
            timestamp: Timestamp((high << 32 | low).cast_signed()),
            interface,
            original_len: get_u32(fields, 16),
            data: rest.get(..captured)?,
            options: rest.get(captured.next_multiple_of(4)..)?,
            interfaces_before: self.interfaces.len(),
            end: self.begin + self.blocks.offset(),
        })
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<StoredPacket<'a>, PieceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let begin = self.blocks.offset();
            let offset = self.begin + begin;
            let Ok((_, block)) = self.blocks.next()? else {
                return Some(Err(PieceError { offset }));
            };
            if block.block_type == block_type::ENHANCED_PACKET {
                return Some(self.packet(offset, &block).ok_or(PieceError { offset }));
            }
            if !self.is_part && self.note(begin, &block).is_none() {
                return Some(Err(PieceError { offset }));
            }
        }
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    (!bytes.is_empty()).then(text)
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
