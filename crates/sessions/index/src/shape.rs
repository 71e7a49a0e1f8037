//! What a segment's file claims, checked before the Parquet reader takes it for true.
//!
//! A file may come from a volume that an attacker made: its checksums are right, and its footer
//! says whatever they wished. So numbers of rows, places of columns, and sizes of pages are
//! compared with the bytes that are there and with what the encoder writes; a row that costs few
//! bytes in the file must not cost many in memory.

use core::ops::Range;

use parquet::basic::{Compression, Type};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use units::number::to_u64;

use crate::error::{Error, Result};
use crate::layout::GROUP_ROWS;
use crate::page::{DELTA_BINARY_PACKED, PLAIN, PLAIN_DICTIONARY, Pages, RLE, RLE_DICTIONARY};
use crate::thrift;

/// Bytes of a footer: 100 bytes for each column of each of up to a thousand groups.
const FOOTER_BYTES_MAX: usize = 16 << 20;
/// Elements of the schema, each with its children.
const SCHEMA_MAX: i64 = 512;
/// Bytes of a page, unpacked: the encoder ends one behind 1 MiB and a batch of texts.
const PAGE_BYTES_MAX: i64 = 16 << 20;
/// Bytes of a column in a row group, unpacked.
const CHUNK_BYTES_MAX: u64 = 128 << 20;
/// Values of a column in a row group: a list for each row.
const VALUES_MAX: i64 = 1 << 24;
/// Bytes of a text: names are cut to 300 before they get there.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Bytes that the texts decoded at a time may take by referring to a dictionary, in one column.
const REFERRED_BYTES_MAX: u64 = 256 << 20;

/// Checks the end of a file: what is claimed in the footer is there.
pub(crate) fn check_footer(end: &[u8]) -> Result<()> {
    let refused = Error::Metadata { field: "footer" };
    let Some((before, _)) = end.split_last_chunk::<FOOTER_SIZE>() else { return Err(refused) };
    let footer = footer_of(end, before).filter(|footer| footer.len() <= FOOTER_BYTES_MAX);
    let mut elements = 0_i64;
    let read = footer.and_then(|footer| {
        thrift::structure(footer, &mut |path, value| {
            match path {
                // FileMetaData.schema, SchemaElement.num_children: the reader descends into them.
                [2, 5] => {
                    elements += 1;
                    (0..=SCHEMA_MAX).contains(&value) && elements <= SCHEMA_MAX
                }
                _ => true,
            }
            .then_some(())
        })
    });
    read.map(drop).ok_or(refused)
}

/// The footer proper at the end of `before`, whose length stands behind it.
fn footer_of<'a>(end: &[u8], before: &'a [u8]) -> Option<&'a [u8]> {
    let (len, _) = end.get(before.len()..)?.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    before.get(before.len().checked_sub(len)?..)
}

/// Checks the footer's claims against the size of the file.
pub(crate) fn check_metadata(metadata: &ParquetMetaData, size_bytes: u64) -> Result<()> {
    let mut chunk_bytes = 0_u64;
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows());
        if rows.is_err() || rows.is_ok_and(|rows| rows > GROUP_ROWS) {
            return Err(Error::Metadata { field: "number of rows" });
        }
        for chunk in group.columns() {
            let len = place_of(chunk, size_bytes).ok_or(Error::Metadata { field: "column" })?;
            chunk_bytes = chunk_bytes.saturating_add(len);
        }
    }
    // Columns that lie on one another would be read, and cost, as many times.
    if chunk_bytes > size_bytes {
        return Err(Error::Metadata { field: "column" });
    }
    Ok(())
}

/// Bytes of a column chunk that lies in the file.
fn place_of(chunk: &ColumnChunkMetaData, size_bytes: u64) -> Option<u64> {
    let begin = u64::try_from(chunk.data_page_offset()).ok()?;
    let dictionary = chunk.dictionary_page_offset().map(u64::try_from).transpose().ok()?;
    let len = u64::try_from(chunk.compressed_size()).ok()?;
    let end = dictionary.filter(|&at| at > 0).unwrap_or(begin).checked_add(len)?;
    let is_known = matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::ZSTD(_));
    let is_there = begin <= size_bytes && end <= size_bytes && len > 0;
    (is_there && is_known && (0..=VALUES_MAX).contains(&chunk.num_values())).then_some(len)
}

/// Checks the pages of a column chunk: `chunk` are its bytes. Where only the rows at `places` are
/// read, pages of others are passed over by what their headers say, and not looked into.
pub(crate) fn check_pages(
    chunk: &[u8],
    (group, column): (&RowGroupMetaData, usize),
    places: Option<&[usize]>,
) -> Result<()> {
    let column = group.column(column);
    // Of lists the reader has to count.
    let places = places.filter(|_| column.column_descr().max_rep_level() == 0);
    pages(chunk, column, (group.num_rows(), places)).ok_or(Error::Metadata { field: "page" })
}

/// What a page's header says.
#[derive(Default)]
struct Page {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;

fn pages(
    chunk: &[u8],
    column: &ColumnChunkMetaData,
    (rows, places): (i64, Option<&[usize]>),
) -> Option<()> {
    let (mut rest, mut unpacked, mut values, mut longest) = (chunk, 0_u64, 0_i64, 0);
    let mut is_first = true;
    let data_pages = Pages::of(column)?;
    while !rest.is_empty() {
        let mut page = Page { kind: -1, ..Page::default() };
        let header_len = thrift::structure(rest, &mut |path, value| {
            let field = match path {
                [1] => &mut page.kind,
                [2] => &mut page.unpacked,
                [3] => &mut page.packed,
                [5 | 7, 1] => &mut page.values,
                [5 | 7, 2] => &mut page.encoding,
                // How levels are encoded.
                [5, 3 | 4] => return (value == RLE).then_some(()),
                // Of the page as a whole.
                [4] => return Some(()),
                // The encoder writes nothing else, and the reader need not read it.
                _ => return None,
            };
            *field = value;
            Some(())
        })?;
        let body = rest.get(header_len..)?;
        let (page_bytes, behind) = body.split_at_checked(usize::try_from(page.packed).ok()?)?;
        let is_bounded = (0..=PAGE_BYTES_MAX).contains(&page.unpacked) && page.values >= 0;
        unpacked = unpacked.checked_add(u64::try_from(page.unpacked).ok()?)?;
        let is_packed = column.compression() != Compression::UNCOMPRESSED;
        if !is_bounded || (!is_packed && page.packed != page.unpacked) {
            return None;
        }
        let is_known = match page.kind {
            DATA => {
                let first = values;
                values = values.checked_add(page.values)?;
                let len = usize::try_from(page.unpacked).ok()?;
                if places.is_none_or(|places| has_any(places, first..values)) {
                    data_pages.check(page_bytes, len, page.encoding)?;
                }
                DATA_ENCODINGS.contains(&page.encoding)
            }
            DICTIONARY => {
                longest = longest_of(page_bytes, column.column_type())?;
                // Dictionaries are in front, and not compressed.
                is_first && !is_packed && PLAIN_ENCODINGS.contains(&page.encoding)
            }
            _ => false,
        };
        if !is_known {
            return None;
        }
        (rest, is_first) = (behind, false);
    }
    let is_list = column.column_descr().max_rep_level() > 0;
    // Of a column without lists a batch at a time is decoded.
    let decoded = if is_list { values } else { values.min(rows) };
    let referred = to_u64(longest).checked_mul(u64::try_from(decoded).ok()?)?;
    let is_bounded = unpacked <= CHUNK_BYTES_MAX && referred <= REFERRED_BYTES_MAX;
    (is_bounded && values == column.num_values() && values <= VALUES_MAX).then_some(())
}

/// Whether some of the places, which ascend, lie in the range.
fn has_any(places: &[usize], range: Range<i64>) -> bool {
    let of = |place: &usize| i64::try_from(*place).unwrap_or(i64::MAX);
    let at = places.partition_point(|place| of(place) < range.start);
    places.get(at).is_some_and(|place| of(place) < range.end)
}

/// In others a text may refer to the one before.
const DATA_ENCODINGS: [i64; 5] =
    [PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY];
const PLAIN_ENCODINGS: [i64; 2] = [PLAIN, PLAIN_DICTIONARY];

/// Bytes of the longest text in a dictionary; 0 where it has no texts. `None` where one is longer
/// than any that is written.
fn longest_of(dictionary: &[u8], kind: Type) -> Option<usize> {
    if kind != Type::BYTE_ARRAY {
        return Some(0);
    }
    let (mut rest, mut longest) = (dictionary, 0);
    while let Some((len, behind)) = rest.split_first_chunk() {
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        rest = behind.get(len..)?;
        longest = longest.max(len);
    }
    (longest <= TEXT_BYTES_MAX).then_some(longest)
}
