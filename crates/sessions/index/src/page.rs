//! The bytes of a data page, checked before the Parquet reader decodes them.
//!
//! That reader takes lengths of runs and of blocks as they are written, and ends the program where
//! such a number has more bytes than any can have. So everything that it may come past is walked:
//! levels, runs, blocks, not the values in them.
//!
//! (Parquet, `Encodings.md`: RLE/bit-packing hybrid and delta encoding.)

use core::cell::RefCell;

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;
use zstd::bulk::Decompressor;

/// Bits of a place in a dictionary.
const PLACE_BITS_MAX: u8 = 32;
/// Values in a group of a bit-packed run; a group takes as many bytes as a value has bits.
const GROUP_VALUES: u64 = 8;

// Numbers of the Thrift enumeration `Encoding`.
pub(crate) const PLAIN: i64 = 0;
pub(crate) const PLAIN_DICTIONARY: i64 = 2;
pub(crate) const RLE: i64 = 3;
pub(crate) const DELTA_BINARY_PACKED: i64 = 5;
pub(crate) const RLE_DICTIONARY: i64 = 8;

thread_local! {
    /// Unpacks pages, into memory that the next one uses again: a row has a page of each column,
    /// and to make an unpacker costs more than to unpack one.
    static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
}

struct Unpacker {
    zstd: Decompressor<'static>,
    unpacked: Vec<u8>,
}

impl Unpacker {
    /// `None` where the page is not `len` bytes, or has no memory.
    fn unpack(&mut self, packed: &[u8], len: usize) -> Option<&[u8]> {
        self.unpacked.clear();
        self.unpacked.try_reserve(len).ok()?;
        let written = self.zstd.decompress_to_buffer(packed, &mut self.unpacked).ok()?;
        (written == len).then_some(&self.unpacked)
    }
}

/// Checks the data pages of one column chunk.
pub(crate) struct Pages {
    is_packed: bool,
    kind: Type,
    levels: Levels,
}

/// What stands in front of the values of a page.
#[derive(Clone, Copy)]
struct Levels {
    /// Bits of a repetition and of a definition level.
    bits: [u8; 2],
    /// The definition level of a value that is there.
    defined: u16,
}

impl Pages {
    /// `None` for levels that no column has.
    pub(crate) fn of(column: &ColumnChunkMetaData) -> Option<Self> {
        let is_packed = column.compression() != Compression::UNCOMPRESSED;
        let bits = |level: i16| u8::try_from(i16::BITS - level.leading_zeros()).unwrap_or(u8::MAX);
        let levels = column.column_descr();
        let bits = [bits(levels.max_rep_level()), bits(levels.max_def_level())];
        let levels = Levels { bits, defined: u16::try_from(levels.max_def_level()).ok()? };
        Some(Self { is_packed, kind: column.column_type(), levels })
    }

    /// `None` where the page is not what its header says: `len` bytes, unpacked, of this encoding.
    pub(crate) fn check(&self, page: &[u8], len: usize, encoding: i64) -> Option<()> {
        if !self.is_packed {
            return body(page, self.levels, self.kind, encoding);
        }
        UNPACKER.with_borrow_mut(|unpacker| {
            if unpacker.is_none() {
                let zstd = Decompressor::new().ok()?;
                *unpacker = Some(Unpacker { zstd, unpacked: Vec::new() });
            }
            let unpacker = unpacker.as_mut()?;
            body(unpacker.unpack(page, len)?, self.levels, self.kind, encoding)
        })
    }
}

fn body(page: &[u8], levels: Levels, kind: Type, encoding: i64) -> Option<()> {
    let [repeated, defined] = levels.bits;
    let (_, rest) = levels_of(page, repeated)?;
    let (definitions, rest) = levels_of(rest, defined)?;
    match encoding {
        PLAIN_DICTIONARY | RLE_DICTIONARY => {
            // A page without values may have nothing at all.
            let Some((&bits, runs)) = rest.split_first() else { return Some(()) };
            (bits <= PLACE_BITS_MAX).then_some(())?;
            hybrid(runs, bits)
        }
        // Booleans are the only values that are written so.
        RLE if kind == Type::BOOLEAN => prefixed(rest, 1).map(drop),
        RLE => None,
        // A page without values may have nothing at all.
        DELTA_BINARY_PACKED if rest.is_empty() => Some(()),
        DELTA_BINARY_PACKED => {
            // The reader takes the first one before it looks whether there is any.
            let is_empty = || !has_level(definitions, defined, levels.defined);
            (deltas(rest)? > 0 || is_empty()).then_some(())
        }
        _ => Some(()),
    }
}

/// Runs of levels, none where a level has no bits; what is behind them.
fn levels_of(bytes: &[u8], bits: u8) -> Option<(&[u8], &[u8])> {
    if bits == 0 { Some((&[], bytes)) } else { prefixed(bytes, bits) }
}

/// Runs behind their length in bytes; what is behind them.
fn prefixed(bytes: &[u8], bits: u8) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (runs, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    hybrid(runs, bits)?;
    Some((runs, behind))
}

/// Whether some level may be `level`, in runs that were checked. Without bits every one is.
fn has_level(runs: &[u8], bits: u8, level: u16) -> bool {
    if bits == 0 {
        return true;
    }
    let mut rest = runs;
    while let Some((run, behind)) = next_run(rest, bits) {
        let packed = run.bytes.len() * 8 / usize::from(bits);
        let levels = if run.is_packed { packed } else { usize::from(run.count > 0) };
        if (0..levels).any(|place| level_at(run.bytes, place, bits) == level) {
            return true;
        }
        rest = behind;
    }
    false
}

/// A level of a run.
fn level_at(run: &[u8], place: usize, bits: u8) -> u16 {
    let begin = place * usize::from(bits);
    let bit = |at: usize| u16::from(run.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1));
    (0..usize::from(bits.min(16))).map(|at| bit(begin + at) << at).sum()
}

/// A value that is repeated, or bit-packed ones.
struct Run<'a> {
    is_packed: bool,
    /// Values; of packed ones a multiple of eight.
    count: u64,
    bytes: &'a [u8],
}

/// Runs of repeated and of bit-packed values. Who reads them may stop at any.
fn hybrid(runs: &[u8], bits: u8) -> Option<()> {
    let mut rest = runs;
    while !rest.is_empty() {
        rest = next_run(rest, bits)?.1;
    }
    Some(())
}

/// The first run, and what is behind it.
fn next_run(runs: &[u8], bits: u8) -> Option<(Run<'_>, &[u8])> {
    let (head, behind) = varint(runs)?;
    let is_packed = head & 1 == 1;
    // The reader counts values by 32 bits.
    let count = if is_packed { (head >> 1).checked_mul(GROUP_VALUES)? } else { head >> 1 };
    u32::try_from(count).ok()?;
    let len = if is_packed { (head >> 1) * u64::from(bits) } else { bits.div_ceil(8).into() };
    // Others may leave out what is behind the last value; the encoder writes whole groups, and the
    // reader counts on them where it takes levels as bits.
    let (bytes, behind) = behind.split_at_checked(usize::try_from(len).ok()?)?;
    Some((Run { is_packed, count, bytes }, behind))
}

/// Blocks of miniblocks of differences; how many values they say that they are.
fn deltas(page: &[u8]) -> Option<u64> {
    let (block_values, rest) = varint(page)?;
    let (miniblocks, rest) = varint(rest)?;
    let (count, rest) = varint(rest)?;
    let (_first, mut rest) = varint(rest)?;
    let values = block_values.checked_div(miniblocks)?;
    let is_block = values > 0 && values.is_multiple_of(32) && block_values <= BLOCK_VALUES_MAX;
    is_block.then_some(())?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let (_least, behind) = varint(rest)?;
        let (widths, packed) = behind.split_at_checked(usize::try_from(miniblocks).ok()?)?;
        let mut len = 0;
        for &bits in widths {
            // What is behind the last value may say anything.
            if left > 0 {
                (bits <= 64).then_some(())?;
                len += u64::from(bits) * (values / 8);
            }
            left = left.saturating_sub(values);
        }
        rest = packed.get(usize::try_from(len).ok()?..)?;
    }
    Some(count)
}

/// Values of a block of differences; the encoder's have 128 or 256.
const BLOCK_VALUES_MAX: u64 = 1 << 16;

/// A number of up to 64 bits, seven in each byte, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * at;
        if (bits << shift) >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: [u8; 11] = [0x80; 11];
    const REQUIRED: Levels = Levels { bits: [0, 0], defined: 0 };
    const OPTIONAL: Levels = Levels { bits: [0, 1], defined: 1 };

    #[test]
    fn a_number_longer_than_any_is_refused_wherever_it_stands() {
        assert_eq!(varint(&LONG), None);
        assert_eq!(hybrid(&LONG, 1), None);
        assert_eq!(hybrid(&[&[4, 1][..], &LONG].concat(), 1), None, "behind a run");
        assert_eq!(deltas(&LONG), None);
        // 128 values in 4 miniblocks, 2 values, the first is 0; then the least difference.
        let header = [0x80, 1, 4, 2, 0];
        assert_eq!(deltas(&[&header[..], &LONG].concat()), None);
        assert_eq!(deltas(&[&header[..], &[0, 1, 0, 0, 0], &[0; 4]].concat()), Some(2));
        let levels = [&11_u32.to_le_bytes()[..], &LONG].concat();
        assert_eq!(body(&levels, OPTIONAL, Type::INT64, 0), None);
        assert_eq!(body(&[], REQUIRED, Type::INT64, 0), Some(()));
    }

    #[test]
    fn values_are_there_only_where_differences_say_so() {
        // Blocks of 128 values in 4 miniblocks: no value, the first is 0.
        let none = [0x80, 1, 4, 0, 0];
        let page = |levels: &[u8]| {
            let len = u32::try_from(levels.len()).unwrap().to_le_bytes();
            [&len[..], levels, &none].concat()
        };
        let read = |levels: &[u8]| {
            body(&page(levels), OPTIONAL, Type::INT64, DELTA_BINARY_PACKED).is_some()
        };
        // Five times absent; five times there; eight levels of which one is there.
        assert!(read(&[10, 0]) && !read(&[10, 1]) && read(&[3, 0]) && !read(&[3, 4]));
        assert!(!read(&[10, 0, 2, 1]), "behind another run");
        assert!(read(&[0, 1]), "a run of nothing");
        assert_eq!(body(&none, REQUIRED, Type::INT64, DELTA_BINARY_PACKED), None);
        assert_eq!(body(&[], REQUIRED, Type::INT64, DELTA_BINARY_PACKED), Some(()));
        let nested = Levels { bits: [1, 2], defined: 3 };
        let of = |level: u8| {
            let page = [&[2, 0, 0, 0, 4, 0, 2, 0, 0, 0, 4, level][..], &none].concat();
            body(&page, nested, Type::INT64, DELTA_BINARY_PACKED).is_some()
        };
        assert!(of(0) && of(2) && !of(3));
    }

    #[test]
    fn widths_and_counts_beyond_what_is_there_are_refused() {
        let header = [0x80, 1, 4, 2, 0];
        assert_eq!(deltas(&[&header[..], &[0, 65, 0, 0, 0], &[0; 999]].concat()), None);
        assert_eq!(deltas(&[&header[..], &[0, 1, 0, 0, 0], &[0; 3]].concat()), None);
        assert_eq!(deltas(&[0, 4, 2, 0]), None, "blocks without values");
        assert_eq!(deltas(&[0x80, 1, 0, 2, 0]), None, "no miniblocks");
        assert_eq!(body(&[33, 2, 0], REQUIRED, Type::INT64, RLE_DICTIONARY), None);
        assert_eq!(body(&[1, 4, 0], REQUIRED, Type::INT64, RLE_DICTIONARY), Some(()));
        // Two groups of eight levels of a bit, of which one is there.
        assert_eq!((hybrid(&[5, 1, 0], 1), hybrid(&[5, 1], 1)), (Some(()), None));
        assert_eq!(hybrid(&[0xff, 0xff, 0xff, 0xff, 0x7f], 1), None, "more than 32 bits");
    }
}
