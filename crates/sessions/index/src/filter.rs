//! The filter of a segment's file: which row groups may hold a host, a pair of hosts, a port, a
//! name, a community id or another value from payload; and the checksums by which parts of the
//! file are read without the rest.
//!
//! It lies between the last row group and the Parquet footer, where Parquet allows anything, so the
//! file stays an ordinary one. A filter is a Bloom filter per row group, all of one size and cut
//! into blocks of 64 bytes; the blocks of the same number of all row groups lie side by side, so
//! that a question reads one short range. Layout: docs/sessions.md, Filter.

use core::net::IpAddr;
use core::ops::{Range, RangeInclusive};
use std::collections::BTreeSet;
use std::sync::LazyLock;

use bytes::Bytes;
use format::checksum::crc32c;
use format::head::{StripeId, VolumeId};
use format::kind::Kind;
use format::session_row::SessionRow;
use format::stored_field::{Access, STORED_FIELDS, StoredField, StoredValue};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use units::number::to_u64;
use units::{Random, Sequence};
use wire::Address;

use crate::content::Source;
use crate::error::{Error, Result};
use crate::meta::SegmentMeta;

const MAGIC: [u8; 8] = *b"WSFILTER";
/// Filters of the version before have no keys of [`PORT`], those of version 2 none of [`VALUE`].
const VERSION: u16 = 4;
const VERSION_WITHOUT_PORTS: u16 = 3;
const VERSION_WITHOUT_VALUES: u16 = 2;
const TRAILER_BYTES: usize = 64;
pub(crate) const BLOCK_BYTES: usize = 64;
/// Bits that a key sets in its block: with `BITS_PER_KEY`, one key in 100 passes by chance.
const PROBES: u32 = 6;
const BITS_PER_KEY: usize = 10;
/// The same for the filter of the whole segment, one key in 600: a thousand segments are asked at
/// once.
const SEGMENT_BITS_PER_KEY: usize = 16;
const CRC_BYTES: usize = 4;
/// The first word of each kind of key.
const HOST: u64 = 1;
const PAIR: u64 = 2;
const NAME: u64 = 3;
const COMMUNITY_ID: u64 = 4;
const VALUE: u64 = 5;
const PORT: u64 = 6;
/// The fields of which a value is a name: its key is that of [`NAME`].
const NAME_FIELDS: [&str; 3] = ["sni", "http_host", "dns_names"];

/// The fields whose values have keys of their own, with the key so far: what payload says, but for
/// times and what is measured, which hardly come twice.
static VALUE_FIELDS: LazyLock<Vec<(&StoredField, u64)>> = LazyLock::new(|| {
    let is_value = |field: &&StoredField| {
        let is_text_or_number = match field.access {
            Access::Text(..) | Access::Texts(..) | Access::Numbers(..) => true,
            Access::MaybeNumber(..) => !matches!(field.kind, Kind::Time | Kind::Duration),
            _ => false,
        };
        field.is_of_payload && is_text_or_number && !NAME_FIELDS.contains(&field.name)
    };
    let keyed = |field: &'static StoredField| (field, text_key(VALUE, field.name, as_it_is));
    STORED_FIELDS.iter().filter(is_value).map(keyed).collect()
});

/// Whether filters say which values of this field rows have.
pub fn knows_values_of(field: &str) -> bool {
    VALUE_FIELDS.iter().any(|(known, _)| known.name == field)
}

/// The fixed part at the end of a file, in front of the Parquet footer: all that is needed to ask
/// the filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trailer {
    pub(crate) volume: VolumeId,
    pub(crate) first: StripeId,
    groups: usize,
    columns: usize,
    blocks: usize,
    /// Blocks of the filter of the whole segment, and where they begin; files of earlier versions
    /// have none.
    segment_blocks: usize,
    segment_at: u64,
    /// It has keys of values.
    pub(crate) has_values: bool,
    /// It has keys of ports.
    has_ports: bool,
    /// Where the blocks begin in the file, and the table behind them.
    blocks_at: u64,
    table_at: u64,
    table_crc: u32,
    footer_crc: u32,
    footer_len: usize,
}

impl Trailer {
    /// Reads the end of a file. `None` where no whole trailer is: then nothing but a checksum of
    /// the whole file can vouch for it.
    pub(crate) fn read(source: &Source) -> Result<Option<Self>> {
        let size = source.size_bytes();
        let Some(end_at) = size.checked_sub(to_u64(FOOTER_SIZE)) else { return Ok(None) };
        let end = source.read(end_at, FOOTER_SIZE)?;
        let footer_len = footer_len(&end).filter(|&len| to_u64(len) <= size);
        let at = footer_len.and_then(|len| {
            Some((len, size.checked_sub(to_u64(len))?.checked_sub(to_u64(TRAILER_BYTES))?))
        });
        let Some((footer_len, at)) = at else { return Ok(None) };
        let trailer = source.read(at, TRAILER_BYTES)?;
        Ok(trailer.first_chunk().and_then(|trailer| Self::decode(trailer, at, footer_len)))
    }

    /// From the bytes of a trailer that lies at `at`.
    fn decode(trailer: &[u8; TRAILER_BYTES], at: u64, footer_len: usize) -> Option<Self> {
        let (checked, crc) = trailer.split_last_chunk()?;
        let mut fields = Fields(checked);
        let (magic, version) = (fields.take()?, fields.u16()?);
        let is_known = magic == MAGIC && (VERSION_WITHOUT_VALUES..=VERSION).contains(&version);
        if !is_known || crc32c(checked) != u32::from_le_bytes(*crc) {
            return None;
        }
        let sub = fields.u16()?;
        let [groups, columns, blocks] = [fields.size()?, fields.size()?, fields.size()?];
        let volume = VolumeId(fields.take()?);
        let sequence = Sequence(u64::from_le_bytes(fields.take()?));
        let (table_crc, footer_crc) = (fields.u32()?, fields.u32()?);
        let segment_blocks = fields.size()?;
        let table_len = groups.checked_mul(columns)?.checked_mul(CRC_BYTES)?;
        let table_at = at.checked_sub(to_u64(table_len))?;
        let blocks_len = to_u64(blocks).checked_mul(to_u64(stride(groups)))?;
        let blocks_at = table_at.checked_sub(blocks_len)?;
        let segment_len = to_u64(segment_len(segment_blocks));
        let segment_at = blocks_at.checked_sub(segment_len)?;
        let first = StripeId { sequence, sub };
        (blocks > 0).then_some(Self {
            volume,
            first,
            groups,
            columns,
            blocks,
            segment_blocks,
            segment_at,
            has_values: version >= VERSION_WITHOUT_PORTS,
            has_ports: version == VERSION,
            blocks_at,
            table_at,
            table_crc,
            footer_crc,
            footer_len,
        })
    }

    /// Blocks of the filter of the whole segment; 0 where it has none.
    pub(crate) fn segment_blocks(&self) -> usize {
        self.segment_blocks
    }

    /// The filter of the whole segment; `None` where its bytes are not as they were.
    pub(crate) fn segment_filter(&self, source: &Source) -> Result<Option<Bytes>> {
        let bytes = source.read(self.segment_at, segment_len(self.segment_blocks))?;
        let Some((filter, crc)) = bytes.split_last_chunk::<CRC_BYTES>() else { return Ok(None) };
        let is_whole = crc32c(filter).to_le_bytes() == *crc;
        Ok(is_whole.then(|| bytes.slice(..filter.len())))
    }

    /// Numbers of the row groups that may hold a row with all that is needed.
    pub(crate) fn candidates(&self, source: &Source, needed: &Needed) -> Result<Vec<usize>> {
        let mut candidates: Vec<usize> = (0..self.groups).collect();
        let ports = needed.port_keys().filter(|_| self.has_ports);
        for key in needed.keys(self.has_values).chain(ports) {
            if candidates.is_empty() {
                break;
            }
            let place = Place::of(key, self.blocks);
            let stride = stride(self.groups);
            let offset = self.blocks_at + to_u64(place.block) * to_u64(stride);
            let row = source.read(offset, stride)?;
            let (blocks, crc) = row.split_at(stride - CRC_BYTES);
            if crc32c(blocks).to_le_bytes() != crc {
                return Err(Error::Checksum { part: "filter" });
            }
            let (blocks, _) = blocks.as_chunks::<BLOCK_BYTES>();
            candidates.retain(|&group| blocks.get(group).is_some_and(|block| place.is_in(block)));
        }
        Ok(candidates)
    }
}

/// A filter, the table of checksums, and the footer.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) trailer: Trailer,
    /// CRC-32C of each column chunk, row group by row group.
    table: Bytes,
    /// The Parquet footer, its length and magic.
    pub(crate) footer: Bytes,
}

impl Filter {
    /// As [`Trailer::read`], and the rest.
    pub(crate) fn read(source: &Source) -> Result<Option<Self>> {
        Trailer::read(source)?.map_or(Ok(None), |trailer| Self::behind(trailer, source))
    }

    /// Reads what lies around a trailer; `None` where it is not whole.
    pub(crate) fn behind(trailer: Trailer, source: &Source) -> Result<Option<Self>> {
        let len = source.size_bytes() - trailer.table_at;
        let bytes = source.read(trailer.table_at, usize::try_from(len).expect("a tail fits"))?;
        let footer_at = bytes.len() - trailer.footer_len;
        let footer = bytes.slice(footer_at..);
        let table = bytes.slice(..footer_at - TRAILER_BYTES);
        let whole = crc32c(&table) == trailer.table_crc && crc32c(&footer) == trailer.footer_crc;
        Ok(whole.then_some(Self { trailer, table, footer }))
    }

    /// Whether these are the bytes of a column chunk.
    pub(crate) fn vouches(&self, group: usize, column: usize, chunk: &[u8]) -> bool {
        let at = (group * self.trailer.columns + column) * CRC_BYTES;
        self.table.get(at..at + CRC_BYTES) == Some(&crc32c(chunk).to_le_bytes())
    }
}

/// Puts a filter of the keys of each row group in front of the footer of a Parquet file.
pub(crate) fn insert(
    mut file: Vec<u8>,
    metadata: &ParquetMetaData,
    meta: &SegmentMeta,
    groups: &[Keys],
) -> Vec<u8> {
    let footer_len = footer_len(&file).expect("a Parquet file ends with the length of its footer");
    let footer = file.split_off(file.len() - footer_len);
    let table = table(&file, metadata);
    let segment_blocks = encode_segment(&mut file, groups);
    let blocks = encode_blocks(&mut file, groups);
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut trailer = Vec::with_capacity(TRAILER_BYTES);
    trailer.extend(MAGIC);
    trailer.extend(VERSION.to_le_bytes());
    trailer.extend(meta.first.sub.to_le_bytes());
    for count in [groups.len(), columns, blocks] {
        trailer
            .extend(u32::try_from(count).expect("counts of a segment fit 32 bits").to_le_bytes());
    }
    trailer.extend(meta.volume.0);
    trailer.extend(meta.first.sequence.get().to_le_bytes());
    trailer.extend(crc32c(&table).to_le_bytes());
    trailer.extend(crc32c(&footer).to_le_bytes());
    let segment_blocks = u32::try_from(segment_blocks).expect("counts of a segment fit 32 bits");
    trailer.extend(segment_blocks.to_le_bytes());
    trailer.resize(TRAILER_BYTES - CRC_BYTES, 0);
    trailer.extend(crc32c(&trailer).to_le_bytes());
    file.extend(table);
    file.extend(trailer);
    file.extend(footer);
    file
}

/// Checksums of the column chunks.
fn table(file: &[u8], metadata: &ParquetMetaData) -> Vec<u8> {
    let chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks
        .flat_map(|chunk| {
            let bytes = file.get(range_of(chunk.byte_range())).expect("chunks lie in their file");
            crc32c(bytes).to_le_bytes()
        })
        .collect()
}

/// A column chunk's place in memory.
fn range_of((offset, len): (u64, u64)) -> Range<usize> {
    let at = |offset| usize::try_from(offset).expect("a file in memory has offsets of its size");
    at(offset)..at(offset + len)
}

/// The keys of a row group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Keys {
    /// All but those of ports.
    keys: Vec<u64>,
    ports: Vec<u16>,
}

impl Keys {
    /// Adds those of some rows.
    pub(crate) fn add(&mut self, rows: &[&SessionRow]) {
        for row in rows {
            self.keys.extend(keys_of_row(row));
            add_values(row, &mut self.keys);
            self.ports.extend([row.tuple.orig_port, row.tuple.resp_port]);
        }
    }

    /// Each once.
    pub(crate) fn distinct(self) -> Self {
        Self { keys: distinct(self.keys), ports: distinct(self.ports) }
    }

    fn len(&self) -> usize {
        self.keys.len() + self.ports.len()
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().copied().chain(self.ports.iter().copied().map(port_key))
    }
}

fn distinct<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Appends the filter of the whole segment with its checksum, and says how many blocks it has. It
/// has no ports: most segments have nearly all of them.
fn encode_segment(file: &mut Vec<u8>, groups: &[Keys]) -> usize {
    let keys = distinct(groups.iter().flat_map(|group| &group.keys).copied().collect());
    let blocks = rounded((keys.len() * SEGMENT_BITS_PER_KEY).div_ceil(8 * BLOCK_BYTES).max(1));
    let begin = file.len();
    file.resize(begin + blocks * BLOCK_BYTES, 0);
    let filter = file.get_mut(begin..).expect("just resized");
    for key in keys {
        let place = Place::of(key, blocks);
        let block = filter.get_mut(place.block * BLOCK_BYTES..).and_then(<[u8]>::first_chunk_mut);
        place.set(block.expect("a place lies in the filter"));
    }
    let crc = crc32c(filter);
    file.extend(crc.to_le_bytes());
    blocks
}

/// Up to three leading bits, so that segments of about the same size have filters of one size: only
/// these lie side by side.
fn rounded(blocks: usize) -> usize {
    let unit = 1 << (usize::BITS - blocks.leading_zeros()).saturating_sub(3);
    blocks.next_multiple_of(unit)
}

/// Bytes of the filter of a whole segment with its checksum.
fn segment_len(blocks: usize) -> usize {
    if blocks == 0 { 0 } else { blocks * BLOCK_BYTES + CRC_BYTES }
}

/// Appends the blocks of all groups, and says how many each has.
fn encode_blocks(file: &mut Vec<u8>, groups: &[Keys]) -> usize {
    let most = groups.iter().map(Keys::len).max().unwrap_or(0);
    let blocks = (most * BITS_PER_KEY).div_ceil(8 * BLOCK_BYTES).max(1);
    let (begin, stride) = (file.len(), stride(groups.len()));
    file.resize(begin + blocks * stride, 0);
    let filter = file.get_mut(begin..).expect("just resized");
    for (group, keys) in groups.iter().enumerate() {
        for key in keys.all() {
            let place = Place::of(key, blocks);
            let at = place.block * stride + group * BLOCK_BYTES;
            let block = filter.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
            place.set(block.expect("a place lies in the filter"));
        }
    }
    for row in filter.chunks_exact_mut(stride) {
        let (blocks, crc) = row.split_at_mut(stride - CRC_BYTES);
        crc.copy_from_slice(&crc32c(blocks).to_le_bytes());
    }
    blocks
}

/// Bytes of the blocks with the same number, and their checksum.
fn stride(groups: usize) -> usize {
    groups * BLOCK_BYTES + CRC_BYTES
}

/// Where a key lies in a filter: its block, and its bits there.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) block: usize,
    bits: u64,
}

impl Place {
    pub(crate) fn of(key: u64, blocks: usize) -> Self {
        let block = (u128::from(key) * u128::from(to_u64(blocks))) >> u64::BITS;
        let block = usize::try_from(block).expect("smaller than the number of blocks");
        Self { block, bits: Random::new(key).next() }
    }

    /// Numbers of its bits in the block.
    pub(crate) fn bits(self) -> impl Iterator<Item = usize> {
        self.probes()
            .map(|(byte, bit)| byte * 8 + usize::try_from(bit.trailing_zeros()).expect("below 8"))
    }

    /// Bytes in the block, and bits in them.
    fn probes(self) -> impl Iterator<Item = (usize, u8)> {
        (0..PROBES).map(move |probe| {
            let bit = (self.bits >> (9 * probe)) & 511;
            let byte = usize::try_from(bit / 8).expect("below 64");
            (byte, 1 << (bit % 8))
        })
    }

    fn set(self, block: &mut [u8; BLOCK_BYTES]) {
        for (byte, bit) in self.probes() {
            *block.get_mut(byte).expect("below the size of a block") |= bit;
        }
    }

    fn is_in(self, block: &[u8; BLOCK_BYTES]) -> bool {
        self.probes().all(|(byte, bit)| block.get(byte).is_some_and(|bits| bits & bit != 0))
    }
}

/// At least so much in the sum of these columns.
pub type Sum = (&'static [&'static str], u64);

/// What every row asked for has: by it row groups are ruled out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needed {
    /// Each is originator or responder.
    pub hosts: Vec<IpAddr>,
    /// Each is a server name of TLS, a host of HTTP or a name asked for of DNS, in lower case.
    pub names: Vec<String>,
    /// Each is the community id.
    pub community_ids: Vec<String>,
    /// Each is a value, in lower case, of the field of this name, which filters know
    /// ([`knows_values_of`]).
    pub values: Vec<(&'static str, String)>,
    /// Each has the port of originator or responder. Filters of row groups know single ports; by
    /// ranges rows are ruled out by their columns.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Of each of these a session of one row has enough. Filters know none: row groups are ruled
    /// out by the bounds of the columns, and rows by the columns; rows of sessions that have others
    /// are not ruled out by them.
    pub sums: Vec<Sum>,
}

impl Needed {
    /// Whether a filter can rule out nothing by it.
    pub(crate) fn is_unfiltered(&self) -> bool {
        self.is_unknown_to_groups() && self.port_keys().next().is_none()
    }

    /// Whether filters of whole segments can rule out nothing by it.
    pub(crate) fn is_unknown_to_groups(&self) -> bool {
        let Self { hosts, names, community_ids, values, ports: _, sums: _ } = self;
        let is_empty = hosts.is_empty() && names.is_empty() && community_ids.is_empty();
        is_empty && values.is_empty()
    }

    /// Of the single ports, which only filters of row groups have.
    fn port_keys(&self) -> impl Iterator<Item = u64> {
        let single = self.ports.iter().filter(|ports| ports.start() == ports.end());
        single.map(|ports| port_key(*ports.start()))
    }

    /// Those that rule out most first, of a filter with keys of values or without.
    pub(crate) fn keys(&self, has_values: bool) -> impl Iterator<Item = u64> {
        let values = self.values.iter().filter(move |_| has_values);
        let values = values.map(|(field, value)| {
            let field = text_key(VALUE, field, as_it_is);
            value_key(field, value)
        });
        let ids = self.community_ids.iter().map(|id| text_key(COMMUNITY_ID, id, as_it_is));
        let names = self.names.iter().map(|name| text_key(NAME, name, as_it_is));
        ids.chain(names).chain(values).chain(keys_of_hosts(&self.hosts))
    }
}

/// The keys of a row but for its values: its two addresses, the pair of them, its names and its
/// community ids.
fn keys_of_row(row: &SessionRow) -> impl Iterator<Item = u64> {
    let [orig, resp] = [row.tuple.orig, row.tuple.resp].map(number_of);
    let pair = orig.zip(resp).map(|(orig, resp)| pair_key(orig, resp));
    let ids = row.community_ids().map(|id| text_key(COMMUNITY_ID, &id.0, as_it_is));
    let names = row.names.sni.iter().chain(&row.names.http_host).chain(&row.names.dns_names);
    let names = names.map(|name| text_key(NAME, name, lower));
    let ends = [orig.map(host_key), resp.map(host_key), pair].into_iter().flatten();
    ends.chain(ids).chain(names)
}

/// Adds the keys of the other values of a row, in place: most rows have one or two of them.
fn add_values(row: &SessionRow, keys: &mut Vec<u64>) {
    for &(field, of_field) in &*VALUE_FIELDS {
        match field.value(row) {
            StoredValue::Text(text) => keys.push(value_key(of_field, text)),
            StoredValue::Texts(texts) => {
                keys.extend(texts.iter().map(|text| value_key(of_field, text)));
            }
            StoredValue::Number(number) => keys.push(value_key(of_field, &number.to_string())),
            StoredValue::Numbers(numbers) => {
                keys.extend(numbers.iter().map(|it| value_key(of_field, &it.to_string())));
            }
            _ => {}
        }
    }
}

fn keys_of_hosts(hosts: &[IpAddr]) -> Vec<u64> {
    let hosts: BTreeSet<u128> = hosts.iter().filter_map(|&host| number_of(host.into())).collect();
    let mut ends = hosts.iter();
    let pair = ends.next().zip(ends.next()).map(|(&one, &other)| pair_key(one, other));
    // The pair first: it rules out most.
    pair.into_iter().chain(hosts.iter().map(|&host| host_key(host))).collect()
}

/// The address as IPv6, for an IPv4 host may also be written as mapped; none but IP has one.
fn number_of(address: Address) -> Option<u128> {
    match address {
        Address::V4(ip) => Some(ip.to_ipv6_mapped().to_bits()),
        Address::V6(ip) => Some(ip.to_bits()),
        Address::Mac(_) | Address::None => None,
    }
}

fn host_key(host: u128) -> u64 {
    key([HOST, low(host >> 64), low(host), 0, 0])
}

fn pair_key(one: u128, other: u128) -> u64 {
    let (first, second) = (one.min(other), one.max(other));
    key([PAIR, low(first >> 64), low(first), low(second >> 64), low(second)])
}

fn port_key(port: u16) -> u64 {
    key([PORT, port.into()])
}

fn low(number: u128) -> u64 {
    u64::try_from(number & u128::from(u64::MAX)).expect("cut to 64 bits")
}

fn text_key(kind: u64, text: &str, letters: fn(u8) -> u8) -> u64 {
    extended(key([kind]), words_of(text, letters))
}

/// Of a value behind the key of its field.
fn value_key(of_field: u64, value: &str) -> u64 {
    extended(of_field, words_of(value, lower))
}

fn as_it_is(byte: u8) -> u8 {
    byte
}

fn lower(byte: u8) -> u8 {
    byte.to_ascii_lowercase()
}

/// The length of a text, and the text in words of 8 bytes, the last filled up with zeros.
fn words_of(text: &str, letters: fn(u8) -> u8) -> impl Iterator<Item = u64> {
    let words = text.as_bytes().chunks(8).map(move |bytes| {
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = letters(*from));
        u64::from_le_bytes(word)
    });
    [to_u64(text.len())].into_iter().chain(words)
}

fn key(words: impl IntoIterator<Item = u64>) -> u64 {
    extended(0, words)
}

/// A key with further words.
fn extended(key: u64, words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(key, |key, word| Random::new(key ^ word).next())
}

/// Bytes of the Parquet footer with its length and magic at its end.
fn footer_len(tail: &[u8]) -> Option<usize> {
    let (_, end) = tail.split_last_chunk::<FOOTER_SIZE>()?;
    let (len, _) = end.split_first_chunk()?;
    usize::try_from(u32::from_le_bytes(*len)).ok()?.checked_add(FOOTER_SIZE)
}

/// Little-endian fields, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }
}
