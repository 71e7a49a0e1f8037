//! Filters over groups of segments: which of up to 1024 segments may hold a host, a name or a
//! community id, in one read for each.
//!
//! A group file lies in the index directory beside the segments' files and is made of their own
//! filters, turned: where a segment's filter has a block of 512 bits, the group has 512 rows with
//! one bit for each segment. A key's six rows, and-ed, are the segments that may have it. Only
//! filters of the same size lie in one group. Like all of the directory a group is a cache: it
//! counts for a segment while it names the very file that the catalog would read, every part is
//! checked when it is read, and it may be deleted at any time. Layout: docs/sessions.md, Groups.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use format::checksum::crc32c;
use format::head::{StripeId, VolumeId};
use units::Sequence;
use units::number::to_u64;

use crate::content::Source;
use crate::error::{Error, Result};
use crate::file_name::{FileName, Identity};
use crate::files::Files;
use crate::filter::{BLOCK_BYTES, Needed, Place, Trailer};

const MAGIC: [u8; 8] = *b"WSGROUP\0";
const VERSION: u16 = 1;
/// At offset 10, where the filters of the members have keys of values.
const WITH_VALUES: u8 = 1;
const HEADER_BYTES: usize = 64;
const MEMBER_BYTES: usize = 48;
const CRC_BYTES: usize = 4;
/// Rows of a block.
const BLOCK_ROWS: usize = 8 * BLOCK_BYTES;
/// Segments of a group at most.
pub(crate) const MEMBERS_MAX: usize = 1024;
/// Segments that are worth a group.
const MEMBERS_MIN: usize = 64;
/// Bytes of the members' filters that are held while a group is made.
const HELD_BYTES: usize = 256 << 20;
/// Bytes of a group that are turned at a time.
const TURNED_BYTES: usize = 16 << 20;

/// A segment of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// Its file.
    pub(crate) name: FileName,
    /// The segment before, if no stripe with packets lies between the two.
    pub(crate) behind: Option<StripeId>,
}

/// A group file, its table read.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    source: Source,
    /// In the order of their stripes.
    pub(crate) members: Vec<Member>,
    shape: Shape,
}

/// What filters of one group have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Shape {
    blocks: usize,
    /// They have keys of values.
    has_values: bool,
}

/// What a group says of its members.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Those that may have what is needed.
    pub(crate) candidates: BTreeSet<StripeId>,
    /// Bytes read for it.
    pub(crate) read_bytes: u64,
}

impl Group {
    /// Whether it is the name of a group.
    pub(crate) fn is_name(name: &str) -> bool {
        name.ends_with(".groups")
    }

    /// Opens a group of this volume; `None` for what is none, or damaged.
    pub(crate) fn open(name: &str, volume: VolumeId, files: &dyn Files) -> Option<Self> {
        let source = Source::new(files.open(name).ok()??);
        let header = source.read(0, HEADER_BYTES).ok()?;
        let (fields, crc) = header.split_last_chunk::<CRC_BYTES>()?;
        let number = |at: usize| {
            let bytes = fields.get(at..)?.first_chunk()?;
            usize::try_from(u32::from_le_bytes(*bytes)).ok()
        };
        let is_known = fields.starts_with(&MAGIC) && fields.get(8..10)? == VERSION.to_le_bytes();
        let is_whole = crc32c(fields).to_le_bytes() == *crc;
        if !is_known || !is_whole || fields.get(24..40)? != volume.0 {
            return None;
        }
        let has_values = fields.get(10) == Some(&WITH_VALUES);
        let (count, shape) = (number(12)?, Shape { blocks: number(16)?, has_values });
        if count == 0 || count > MEMBERS_MAX {
            return None;
        }
        let table = source.read(to_u64(HEADER_BYTES), count * MEMBER_BYTES + CRC_BYTES).ok()?;
        let (table, crc) = table.split_last_chunk::<CRC_BYTES>()?;
        let (members, _) = table.as_chunks::<MEMBER_BYTES>();
        if crc32c(table).to_le_bytes() != *crc {
            return None;
        }
        let members = members.iter().map(decode_member).collect::<Option<Vec<_>>>()?;
        Some(Self { name: name.to_owned(), source, members, shape })
    }

    /// The members that may have all that is needed.
    pub(crate) fn ask(&self, needed: &Needed) -> Result<Answer> {
        let row_bytes = row_bytes(self.members.len());
        let stride = BLOCK_ROWS * row_bytes + CRC_BYTES;
        let mut alive = vec![u8::MAX; row_bytes];
        for key in needed.keys(self.shape.has_values) {
            let place = Place::of(key, self.shape.blocks);
            let at = blocks_at(self.members.len()) + to_u64(place.block) * to_u64(stride);
            let block = self.source.read(at, stride)?;
            let (rows, crc) = block.split_at(stride - CRC_BYTES);
            if crc32c(rows).to_le_bytes() != crc {
                return Err(Error::Checksum { part: "group" });
            }
            for bit in place.bits() {
                let row = rows.get(bit * row_bytes..).unwrap_or_default();
                alive.iter_mut().zip(row).for_each(|(alive, bits)| *alive &= bits);
            }
        }
        let is_alive =
            |at: usize| alive.get(at / 8).is_some_and(|bits| (bits >> (at % 8)) & 1 == 1);
        let members = self.members.iter().enumerate().filter(|(at, _)| is_alive(*at));
        let candidates = members.map(|(_, member)| member.name.first).collect();
        Ok(Answer { candidates, read_bytes: self.source.read_bytes() })
    }
}

/// A segment's file, opened as far as its trailer; `None` where it has no filter of the segment.
fn open_file(member: &Member, files: &dyn Files) -> Option<(Source, Trailer)> {
    let source = Source::new(files.open(&member.name.to_text()).ok()??);
    let trailer = Trailer::read(&source).ok()??;
    let is_it = trailer.first == member.name.first && trailer.segment_blocks() > 0;
    is_it.then_some((source, trailer))
}

/// Whether all that [`make`] would do is done: each group has files that count, and few have none.
pub(crate) fn are_made(members: &[Member], groups: &[Group]) -> bool {
    let known: BTreeSet<FileName> = members.iter().map(|member| member.name).collect();
    let names = |group: &Group| group.members.iter().map(|member| member.name).collect::<Vec<_>>();
    let covered: BTreeSet<FileName> = groups.iter().flat_map(names).collect();
    let counts = |group: &Group| group.members.iter().any(|member| known.contains(&member.name));
    known.difference(&covered).count() < MEMBERS_MIN && groups.iter().all(counts)
}

/// Makes groups of the files that no group names, if there are enough: the newest group that is
/// not full is made anew with them, once they have doubled it. Says how many files were written.
pub(crate) fn make(
    volume: VolumeId,
    members: &[Member],
    groups: Vec<Group>,
    files: &dyn Files,
) -> Result<usize> {
    let known: BTreeSet<String> = members.iter().map(|member| member.name.to_text()).collect();
    let mut covered: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<Group> = Vec::new();
    for group in groups {
        let texts: Vec<String> = group.members.iter().map(|member| member.name.to_text()).collect();
        if !texts.iter().any(|text| known.contains(text)) {
            files.remove(&group.name).map_err(Error::Content)?;
            continue;
        }
        covered.extend(texts);
        open.push(group);
    }
    let is_loose = |member: &&Member| !covered.contains(&member.name.to_text());
    let loose: Vec<&Member> = members.iter().filter(is_loose).collect();
    if loose.len() < MEMBERS_MIN {
        return Ok(0);
    }
    let mut shapes: BTreeMap<Shape, Vec<Member>> = BTreeMap::new();
    for member in loose {
        if let Some((_, trailer)) = open_file(member, files) {
            shapes.entry(shape_of(&trailer)).or_default().push(*member);
        }
    }
    let mut written = 0;
    for (shape, mut loose) in shapes.into_iter().filter(|(_, loose)| loose.len() >= MEMBERS_MIN) {
        let grows = |group: &&Group| {
            group.shape == shape
                && group.members.len() < MEMBERS_MAX
                && group.members.len() <= loose.len()
        };
        let old = open.iter().filter(grows).max_by_key(|group| group.members.last().map(order));
        // Of a segment that was recorded anew the file of today counts.
        let kept = old.iter().flat_map(|group| &group.members);
        loose.extend(kept.filter(|member| known.contains(&member.name.to_text())));
        loose.sort_unstable_by_key(order);
        let most = (HELD_BYTES / (shape.blocks * BLOCK_BYTES)).clamp(MEMBERS_MIN, MEMBERS_MAX);
        for members in loose.chunks(most) {
            written += usize::from(write(volume, shape, members, files)?);
        }
        if let Some(old) = old {
            files.remove(&old.name).map_err(Error::Content)?;
        }
    }
    Ok(written)
}

fn order(member: &Member) -> StripeId {
    member.name.first
}

/// Writes a group of these files, without those that cannot be read; false where too few are left.
fn write(volume: VolumeId, shape: Shape, members: &[Member], files: &dyn Files) -> Result<bool> {
    let blocks = shape.blocks;
    let mut filters: Vec<(Member, Bytes)> = Vec::with_capacity(members.len());
    for member in members {
        let filter = open_file(member, files)
            .filter(|(_, trailer)| shape_of(trailer) == shape)
            .and_then(|(source, trailer)| trailer.segment_filter(&source).ok()?);
        filters.extend(filter.map(|filter| (*member, filter)));
    }
    let Some((first, _)) = filters.first().filter(|_| filters.len() >= MEMBERS_MIN) else {
        return Ok(false);
    };
    let (StripeId { sequence, sub }, count) = (first.name.first, filters.len());
    let name = format!("{sequence:020}-{sub:05}-{blocks}-{count}.groups");
    let head = encode_head(volume, shape, &filters);
    let row_bytes = row_bytes(filters.len());
    let at_once = (TURNED_BYTES / (BLOCK_ROWS * row_bytes + CRC_BYTES)).max(1);
    let mut next = 0;
    let mut part = |into: &mut Vec<u8>| {
        if next == 0 {
            into.extend(&head);
        }
        let end = (next + at_once).min(blocks);
        for block in next..end {
            turn(block, &filters, row_bytes, into);
        }
        next = end;
        next < blocks
    };
    files.write_parts(&name, &mut part).map_err(Error::Content)?;
    Ok(true)
}

fn shape_of(trailer: &Trailer) -> Shape {
    Shape { blocks: trailer.segment_blocks(), has_values: trailer.has_values }
}

fn encode_head(volume: VolumeId, shape: Shape, members: &[(Member, Bytes)]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEADER_BYTES + members.len() * MEMBER_BYTES + CRC_BYTES);
    head.extend(MAGIC);
    head.extend(VERSION.to_le_bytes());
    head.extend([if shape.has_values { WITH_VALUES } else { 0 }, 0]);
    for count in [members.len(), shape.blocks] {
        head.extend(u32::try_from(count).expect("counts of a group fit 32 bits").to_le_bytes());
    }
    head.extend([0; 4]);
    head.extend(volume.0);
    head.resize(HEADER_BYTES - CRC_BYTES, 0);
    head.extend(crc32c(&head).to_le_bytes());
    let table_at = head.len();
    for (Member { name, behind }, _) in members {
        // No stripe has the sequence 0.
        for stripe in [name.first, behind.unwrap_or_default()] {
            head.extend(stripe.sequence.get().to_le_bytes());
            head.extend(stripe.sub.to_le_bytes());
            head.extend([0; 6]);
        }
        head.extend(name.crc.to_le_bytes());
        head.extend(name.identity.to_u64().to_le_bytes());
    }
    let crc = crc32c(head.get(table_at..).expect("the table was just written"));
    head.extend(crc.to_le_bytes());
    head
}

fn decode_member(bytes: &[u8; MEMBER_BYTES]) -> Option<Member> {
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let stripe = |at: usize| {
        let sub = u16::from_le_bytes(*bytes.get(at + 8..)?.first_chunk()?);
        Some(StripeId { sequence: Sequence(number(at)?), sub })
    };
    let identity = Identity::from_u64(number(40)?);
    let name = FileName { first: stripe(0)?, crc: number(32)?, identity };
    Some(Member { name, behind: stripe(16).filter(|behind| behind.sequence > Sequence(0)) })
}

/// Appends a block: a row for each of its bits, with a bit for each member, and their checksum.
fn turn(block: usize, members: &[(Member, Bytes)], row_bytes: usize, into: &mut Vec<u8>) {
    let begin = into.len();
    into.resize(begin + BLOCK_ROWS * row_bytes, 0);
    let rows = into.get_mut(begin..).expect("just resized");
    for (at, (_, filter)) in members.iter().enumerate() {
        let bits = filter.get(block * BLOCK_BYTES..(block + 1) * BLOCK_BYTES).unwrap_or_default();
        for (byte, &bits) in bits.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let bit = usize::try_from(bits.trailing_zeros()).expect("below 8");
                let row = byte * 8 + bit;
                if let Some(place) = rows.get_mut(row * row_bytes + at / 8) {
                    *place |= 1 << (at % 8);
                }
                bits &= bits - 1;
            }
        }
    }
    let crc = crc32c(rows);
    into.extend(crc.to_le_bytes());
}

/// Bytes of a row: a bit for each member.
fn row_bytes(members: usize) -> usize {
    members.div_ceil(8)
}

/// Where the blocks begin.
fn blocks_at(members: usize) -> u64 {
    to_u64(HEADER_BYTES + members * MEMBER_BYTES + CRC_BYTES)
}
