//! INDEX pieces: a segment's Parquet file cut into parts, and the directory of the segments before
//! it.
//!
//! [`split`] makes the parts, [`Part::decode`] reads one, [`Assembler`] joins them. Each part is
//! one pcapng block of a local-use type, so readers of the pieces around it step over it. What the
//! Parquet file holds is not known here, nor where a part lies: places are given by the caller.
//!
//! A decoded part is whole (checksum over header, directory and payload), its numbers lie in their
//! ranges, and an assembled file has the checksum that its parts announced. Decoding never panics,
//! whatever the bytes.
//!
//! Layout: docs/format.md, Index parts and Directory.

use std::collections::BTreeMap;

use crc_fast::{CrcAlgorithm, Digest, checksum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::number::to_u64;
use units::{InterfaceId, Sequence, Timestamp};

use crate::head::{SEQUENCE_MAX, StripeId};

/// Type of the pcapng block of an INDEX part: local use, "WS".
pub const BLOCK_TYPE: u32 = 0x8000_5753;
/// Most segments that one directory lists.
pub const DIRECTORY_MAX: usize = 1024;
/// Most sessions, and packets, of a segment: sums over a ring stay below 64 bits.
pub const COUNT_MAX: u64 = 1 << 48;
/// Smallest capacity that [`split`] accepts.
pub const PART_CAPACITY_MIN: usize = 512;

const MAGIC: [u8; 8] = *b"wspindex";
const VERSION: u16 = 1;
const HEADER_SIZE: usize = 72;
const ENTRY_SIZE: usize = 80;
const TRAILER_SIZE: usize = 4;
/// The checksum covers what follows the framing, itself left out.
const CHECKED_FROM: usize = 8;
const CHECKSUM_AT: usize = 64;

const _: () = assert!(CHECKSUM_AT + 8 == HEADER_SIZE && HEADER_SIZE.is_multiple_of(8));
const _: () = assert!(PART_CAPACITY_MIN >= 2 * (HEADER_SIZE + ENTRY_SIZE + TRAILER_SIZE + 3));

/// Why packets are missing.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// Lost in the network interface or its driver.
    InterfaceDrops,
    /// No free block in the kernel ring.
    KernelDrops,
    /// Left the kernel ring, never became durable: the members were too slow or failed.
    WriterDrops,
    /// Recording ended without a stop; what was not acknowledged is lost.
    Crash,
    /// Pieces that cannot be read or repaired.
    Damage,
}

impl GapCause {
    /// Every cause.
    pub const ALL: [Self; 5] =
        [Self::InterfaceDrops, Self::KernelDrops, Self::WriterDrops, Self::Crash, Self::Damage];

    /// The cause as written in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::InterfaceDrops => "interface_drops",
            Self::KernelDrops => "kernel_drops",
            Self::WriterDrops => "writer_drops",
            Self::Crash => "crash",
            Self::Damage => "damage",
        }
    }
}

/// A stretch in which packets are known to be missing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// Cause of the gap.
    pub cause: GapCause,
    /// Interface, where the loss can be laid to one. Reports have its name.
    #[serde(skip)]
    pub interface: Option<InterfaceId>,
    /// Packets lost; `None` is unknown, not zero.
    pub packets: Option<u64>,
    /// Bytes lost; `None` is unknown, not zero.
    pub bytes: Option<u64>,
    /// The loss happened at or after this time.
    #[serde(rename = "from_ns")]
    pub from: Timestamp,
    /// The loss happened at or before this time.
    #[serde(rename = "to_ns")]
    pub to: Timestamp,
}

/// What a directory says of a segment's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// First stripe: the segment's id.
    pub first: StripeId,
    /// Last stripe of the segment.
    pub last: StripeId,
    /// Time of the earliest packet.
    pub time_min: Timestamp,
    /// Time of the latest packet.
    pub time_max: Timestamp,
    /// Number of session rows.
    pub sessions: u64,
    /// Packets stored.
    pub packets: u64,
    /// Some packets are stored but in no row.
    pub unindexed: bool,
    /// The segment has gaps.
    pub gaps: bool,
    /// Some payload was not looked at for names.
    pub unread: bool,
}

impl Summary {
    /// Whether numbers and times are such as a segment has; one without packets has no times.
    pub fn is_in_range(&self) -> bool {
        self.first <= self.last
            && self.last.sequence <= SEQUENCE_MAX
            && self.packets <= COUNT_MAX
            && self.sessions <= COUNT_MAX
            && (self.packets == 0 || self.time_min <= self.time_max)
    }
}

/// A segment in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentEntry {
    /// What the segment holds.
    pub summary: Summary,
    /// Stripe of its INDEX part 0.
    pub index: StripeId,
    /// Parts of its index.
    pub parts: u16,
    /// Bytes of its Parquet file.
    pub bytes: u64,
}

/// The bytes are no part of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// Fewer bytes than the block says, or than any block has.
    #[error("index part is cut short")]
    Length,
    /// Another type of block, or another magic.
    #[error("not an index part")]
    Magic,
    /// Written by a later wirespool.
    #[error("index part has version {version}, known is 1")]
    Version {
        /// The version found.
        version: u16,
    },
    /// The bytes are not those that were written.
    #[error("index part does not match its checksum")]
    Checksum,
    /// A number that no writer writes.
    #[error("index part has an impossible {field}")]
    Range {
        /// Name of the field.
        field: &'static str,
    },
    /// A part of another index than the parts before it.
    #[error("index part belongs to another index")]
    Foreign,
    /// All parts are there, but the file they make is not the one that was cut.
    #[error("the joined index does not match its checksum")]
    Whole,
}

/// Cuts `parquet` into blocks of at most `part_capacity` bytes, framing included, each a multiple
/// of 4 long.
///
/// `older` are the segments before this one, newest first; as many are listed as fit into half of
/// the first part.
///
/// # Panics
/// If `part_capacity` is below [`PART_CAPACITY_MIN`], or so small that there would be more than 65
/// 535 parts.
pub fn split(
    parquet: &[u8],
    summary: &Summary,
    older: &[SegmentEntry],
    part_capacity: usize,
) -> Vec<Vec<u8>> {
    assert!(part_capacity >= PART_CAPACITY_MIN, "an index part fits a header and an entry");
    assert!(summary.is_in_range(), "a segment ends after it begins");
    let room = part_capacity / 4 * 4 - HEADER_SIZE - TRAILER_SIZE;
    let listed = (part_capacity / 2 / ENTRY_SIZE).clamp(1, DIRECTORY_MAX).min(1 + older.len());
    let (head, tail) =
        parquet.split_at_checked((room - listed * ENTRY_SIZE) / 4 * 4).unwrap_or((parquet, &[]));
    let payloads: Vec<&[u8]> = core::iter::once(head).chain(tail.chunks(room)).collect();
    let parts = u16::try_from(payloads.len()).expect("an index has fewer than 65 536 parts");
    let own = SegmentEntry {
        summary: *summary,
        index: StripeId::default(),
        parts,
        bytes: to_u64(parquet.len()),
    };
    let mut entries = vec![own];
    entries.extend(older.iter().take(listed - 1));
    let mut part = Part {
        segment: summary.first,
        number: 0,
        parts,
        total: own.bytes,
        offset: 0,
        crc: checksum(CrcAlgorithm::Crc64Nvme, parquet),
        entries,
        payload: head,
    };
    let mut blocks = Vec::with_capacity(payloads.len());
    for payload in payloads {
        part.payload = payload;
        blocks.push(part.encode());
        part.number = part.number.wrapping_add(1);
        part.offset += to_u64(payload.len());
        part.entries.clear();
    }
    blocks
}

/// One part, checked. Borrows the payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    segment: StripeId,
    number: u16,
    parts: u16,
    total: u64,
    offset: u64,
    crc: u64,
    entries: Vec<SegmentEntry>,
    payload: &'a [u8],
}

impl<'a> Part<'a> {
    /// First stripe of the segment.
    pub fn segment(&self) -> StripeId {
        self.segment
    }

    /// Which part of how many, from 0.
    pub fn number(&self) -> (u16, u16) {
        (self.number, self.parts)
    }

    /// The directory, newest segment first, when this part carries it: part 0, read from the stripe
    /// `at`.
    pub fn directory(&self, at: StripeId) -> Vec<SegmentEntry> {
        let mut entries = self.entries.clone();
        if let Some(own) = entries.first_mut() {
            own.index = at;
        }
        entries
    }

    /// The directory alone, from the first bytes of a part 0 that the caller verified by other
    /// checksums; the payload need not be among them.
    ///
    /// # Errors
    /// [`PartError::Length`] where the bytes end before the directory does.
    pub fn directory_in(bytes: &[u8], at: StripeId) -> Result<Vec<SegmentEntry>, PartError> {
        let (header, behind) = Header::decode(bytes)?;
        let (entries, _) = header.entries(behind)?;
        let part = header.part(entries, &[]);
        part.check_directory()?;
        Ok(part.directory(at))
    }

    /// Reads the part that `bytes` begin with; what follows its block is not looked at.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, PartError> {
        let (header, behind) = Header::decode(bytes)?;
        let (entries, rest) =
            behind.split_at_checked(header.listed * ENTRY_SIZE).ok_or(PartError::Length)?;
        let payload = rest.get(..header.payload_len).ok_or(PartError::Length)?;
        let checked = bytes.get(CHECKED_FROM..CHECKSUM_AT).ok_or(PartError::Length)?;
        if part_checksum([checked, entries, payload]) != header.stored {
            return Err(PartError::Checksum);
        }
        let (entries, _) = header.entries(behind)?;
        let part = header.part(entries, payload);
        part.check_ranges()?;
        part.check_framing(bytes, header.block_len)?;
        Ok(part)
    }

    fn check_ranges(&self) -> Result<(), PartError> {
        let range = |field| Err(PartError::Range { field });
        if self.number >= self.parts {
            return range("part number");
        }
        match self.offset.checked_add(to_u64(self.payload.len())) {
            Some(end) if end <= self.total && (end == self.total) == self.is_last() => {}
            _ => return range("offset"),
        }
        if self.number == 0 && self.offset != 0 {
            return range("offset");
        }
        self.check_directory()
    }

    fn check_directory(&self) -> Result<(), PartError> {
        let own = self.entries.first().map(|own| (own.summary.first, own.bytes, own.parts));
        if (self.number == 0) != (own == Some((self.segment, self.total, self.parts)))
            || (self.number > 0 && own.is_some())
            || self.entries.len() > DIRECTORY_MAX
            || !self.entries.is_sorted_by(|newer, older| newer.summary.first > older.summary.last)
        {
            return Err(PartError::Range { field: "directory" });
        }
        Ok(())
    }

    fn check_framing(&self, bytes: &[u8], block_len: u32) -> Result<(), PartError> {
        let len = self.block_len();
        let trailer = bytes.get(..len).and_then(<[u8]>::last_chunk).ok_or(PartError::Length)?;
        if to_usize(block_len) != len || u32::from_le_bytes(*trailer) != block_len {
            return Err(PartError::Range { field: "block length" });
        }
        Ok(())
    }

    fn is_last(&self) -> bool {
        self.number + 1 == self.parts
    }

    fn block_len(&self) -> usize {
        let content = HEADER_SIZE + self.entries.len() * ENTRY_SIZE + self.payload.len();
        content.next_multiple_of(4) + TRAILER_SIZE
    }

    fn encode(&self) -> Vec<u8> {
        let len = self.block_len();
        let block_len = u32::try_from(len).expect("a piece is shorter than 4 GiB").to_le_bytes();
        let listed = u16::try_from(self.entries.len()).expect("at most 1024 entries");
        let payload_len = u32::try_from(self.payload.len()).expect("a piece is below 4 GiB");
        let mut checked = Vec::with_capacity(CHECKSUM_AT - CHECKED_FROM);
        checked.extend(MAGIC);
        for field in [VERSION, self.number, self.parts, self.segment.sub] {
            checked.extend(field.to_le_bytes());
        }
        for field in [self.segment.sequence.get(), self.total, self.offset, self.crc] {
            checked.extend(field.to_le_bytes());
        }
        checked.extend(listed.to_le_bytes());
        checked.extend(0_u16.to_le_bytes());
        checked.extend(payload_len.to_le_bytes());
        assert_eq!(checked.len(), CHECKSUM_AT - CHECKED_FROM, "the header is as drawn");
        let entries: Vec<u8> = self.entries.iter().flat_map(encode_entry).collect();

        let mut block = Vec::with_capacity(len);
        block.extend(BLOCK_TYPE.to_le_bytes());
        block.extend(block_len);
        block.extend(&checked);
        block.extend(part_checksum([&checked, &entries, self.payload]).to_le_bytes());
        block.extend(entries);
        block.extend(self.payload);
        block.resize(len - TRAILER_SIZE, 0);
        block.extend(block_len);
        block
    }
}

/// Joins the parts of one index, in any order. Memory follows the parts received, not what they
/// announce.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Segment, parts, total and checksum that every part must repeat.
    index: Option<(StripeId, u16, u64, u64)>,
    parts: BTreeMap<u16, Vec<u8>>,
}

impl Assembler {
    /// Takes a part; returns the Parquet file when it was the last one missing. A part given twice
    /// counts once.
    pub fn push(&mut self, part: &Part<'_>) -> Result<Option<Vec<u8>>, PartError> {
        let index = (part.segment, part.parts, part.total, part.crc);
        if *self.index.get_or_insert(index) != index {
            return Err(PartError::Foreign);
        }
        self.parts.insert(part.number, part.payload.to_vec());
        if self.parts.len() < usize::from(part.parts) {
            return Ok(None);
        }
        let parts: Vec<&[u8]> = self.parts.values().map(Vec::as_slice).collect();
        let parquet = parts.concat();
        if to_u64(parquet.len()) != part.total
            || checksum(CrcAlgorithm::Crc64Nvme, &parquet) != part.crc
        {
            return Err(PartError::Whole);
        }
        Ok(Some(parquet))
    }
}

fn encode_entry(entry: &SegmentEntry) -> [u8; ENTRY_SIZE] {
    let SegmentEntry { summary, index, parts, bytes } = entry;
    let mut out = Vec::with_capacity(ENTRY_SIZE);
    let [first, last, index_at] = [summary.first, summary.last, *index].map(|it| it.sequence.get());
    for field in [first, last, index_at, *bytes] {
        out.extend(field.to_le_bytes());
    }
    for time in [summary.time_min, summary.time_max] {
        out.extend(time.0.to_le_bytes());
    }
    for field in [summary.sessions, summary.packets] {
        out.extend(field.to_le_bytes());
    }
    let flags = u32::from(summary.unindexed)
        | u32::from(summary.gaps) << 1
        | u32::from(summary.unread) << 2;
    out.extend(flags.to_le_bytes());
    for field in [*parts, summary.first.sub, summary.last.sub, index.sub] {
        out.extend(field.to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    out.try_into().expect("an entry is as drawn")
}

fn decode_entry(bytes: &[u8; ENTRY_SIZE]) -> Result<SegmentEntry, PartError> {
    let mut fields = Fields(bytes);
    let (first, last, index) = (fields.sequence()?, fields.sequence()?, fields.sequence()?);
    let file = fields.u64()?;
    let time_min = Timestamp(i64::from_le_bytes(fields.take()?));
    let time_max = Timestamp(i64::from_le_bytes(fields.take()?));
    let (sessions, packets) = (fields.u64()?, fields.u64()?);
    let flags = u32::from_le_bytes(fields.take()?);
    let parts = fields.u16()?;
    let (first_sub, last_sub, index_sub) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let summary = Summary {
        first: StripeId { sequence: first, sub: first_sub },
        last: StripeId { sequence: last, sub: last_sub },
        time_min,
        time_max,
        sessions,
        packets,
        unindexed: flags & 1 != 0,
        gaps: flags & 2 != 0,
        unread: flags & 4 != 0,
    };
    if !summary.is_in_range() || parts == 0 || index > SEQUENCE_MAX {
        return Err(PartError::Range { field: "directory entry" });
    }
    Ok(SegmentEntry {
        summary,
        index: StripeId { sequence: index, sub: index_sub },
        parts,
        bytes: file,
    })
}

/// What stands in front of a part's directory.
struct Header {
    block_len: u32,
    segment: StripeId,
    number: u16,
    parts: u16,
    total: u64,
    offset: u64,
    crc: u64,
    /// Directory entries.
    listed: usize,
    payload_len: usize,
    /// Checksum of the part.
    stored: u64,
}

impl Header {
    /// The part that it stands in front of.
    fn part<'a>(&self, entries: Vec<SegmentEntry>, payload: &'a [u8]) -> Part<'a> {
        let &Self { segment, number, parts, total, offset, crc, .. } = self;
        Part { segment, number, parts, total, offset, crc, entries, payload }
    }

    /// The header, and the bytes behind it.
    fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), PartError> {
        let mut fields = Fields(bytes);
        let block_type = u32::from_le_bytes(fields.take()?);
        let block_len = u32::from_le_bytes(fields.take()?);
        let magic: [u8; 8] = fields.take()?;
        if block_type != BLOCK_TYPE || magic != MAGIC {
            return Err(PartError::Magic);
        }
        let version = fields.u16()?;
        if version != VERSION {
            return Err(PartError::Version { version });
        }
        let (number, parts, sub) = (fields.u16()?, fields.u16()?, fields.u16()?);
        let segment = StripeId { sequence: fields.sequence()?, sub };
        let (total, offset, crc) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (listed, _reserved) = (usize::from(fields.u16()?), fields.u16()?);
        let payload_len = to_usize(u32::from_le_bytes(fields.take()?));
        let stored = fields.u64()?;
        let header = Self {
            block_len,
            segment,
            number,
            parts,
            total,
            offset,
            crc,
            listed,
            payload_len,
            stored,
        };
        Ok((header, fields.0))
    }

    /// The directory that the bytes behind the header begin with, and what follows it.
    fn entries<'a>(&self, behind: &'a [u8]) -> Result<(Vec<SegmentEntry>, &'a [u8]), PartError> {
        let cut = behind.split_at_checked(self.listed * ENTRY_SIZE);
        let (entries, rest) = cut.ok_or(PartError::Length)?;
        let (entries, _) = entries.as_chunks::<ENTRY_SIZE>();
        Ok((entries.iter().map(decode_entry).collect::<Result<_, _>>()?, rest))
    }
}

/// Reads fields one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], PartError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(PartError::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, PartError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, PartError> {
        self.take().map(u64::from_le_bytes)
    }

    fn sequence(&mut self) -> Result<Sequence, PartError> {
        self.u64().map(Sequence)
    }
}

fn part_checksum(stretches: [&[u8]; 3]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    for stretch in stretches {
        digest.update(stretch);
    }
    digest.finalize()
}

fn to_usize(len: u32) -> usize {
    usize::try_from(len).expect("addresses have at least 32 bits")
}

#[cfg(test)]
mod tests;
