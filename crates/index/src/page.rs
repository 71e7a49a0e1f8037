//! The bytes of a data page, checked before the Parquet reader decodes them.
//!
//! That reader takes lengths of runs and of blocks as they are written, and ends the program where
//! such a number has more bytes than any can have. So everything that it may come past is walked:
//! levels, runs, blocks, not the values in them.
//!
//! (Parquet, `Encodings.md`: RLE/bit-packing hybrid and delta encoding.)

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;
use zstd::bulk::Decompressor;

use crate::shape::{DELTA_BINARY_PACKED, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};

/// Bits of a place in a dictionary.
const PLACE_BITS_MAX: u8 = 32;
/// Values in a group of a bit-packed run; a group takes as many bytes as a value has bits.
const GROUP_VALUES: u64 = 8;

/// Checks the data pages of one column chunk.
pub(crate) struct Pages {
    unpacker: Option<Decompressor<'static>>,
    unpacked: Vec<u8>,
    kind: Type,
    /// Bits of a repetition and of a definition level.
    level_bits: [u8; 2],
}

impl Pages {
    /// `None` where zstd has no memory.
    pub(crate) fn of(column: &ColumnChunkMetaData) -> Option<Self> {
        let unpacker = match column.compression() {
            Compression::UNCOMPRESSED => None,
            _ => Some(Decompressor::new().ok()?),
        };
        let bits = |level: i16| u8::try_from(i16::BITS - level.leading_zeros()).unwrap_or(u8::MAX);
        let levels = column.column_descr();
        let level_bits = [bits(levels.max_rep_level()), bits(levels.max_def_level())];
        Some(Self { unpacker, unpacked: Vec::new(), kind: column.column_type(), level_bits })
    }

    /// `None` where the page is not what its header says: `len` bytes, unpacked, of this encoding.
    pub(crate) fn check(&mut self, packed: &[u8], len: usize, encoding: i64) -> Option<()> {
        let Some(unpacker) = &mut self.unpacker else {
            return body(packed, self.level_bits, self.kind, encoding);
        };
        self.unpacked.clear();
        self.unpacked.try_reserve(len).ok()?;
        let written = unpacker.decompress_to_buffer(packed, &mut self.unpacked).ok()?;
        let is_whole = written == len;
        is_whole.then(|| body(&self.unpacked, self.level_bits, self.kind, encoding))?
    }
}

fn body(page: &[u8], level_bits: [u8; 2], kind: Type, encoding: i64) -> Option<()> {
    let mut rest = page;
    for bits in level_bits.into_iter().filter(|bits| *bits > 0) {
        rest = prefixed(rest, bits)?;
    }
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
        DELTA_BINARY_PACKED => deltas(rest),
        _ => Some(()),
    }
}

/// Runs behind their length in bytes; what is behind them.
fn prefixed(bytes: &[u8], bits: u8) -> Option<&[u8]> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (runs, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
    hybrid(runs, bits)?;
    Some(behind)
}

/// Runs of repeated and of bit-packed values. Who reads them may stop at any.
fn hybrid(runs: &[u8], bits: u8) -> Option<()> {
    let mut rest = runs;
    while !rest.is_empty() {
        let (head, behind) = varint(rest)?;
        let is_packed = head & 1 == 1;
        // The reader counts values by 32 bits.
        let count = if is_packed { (head >> 1).checked_mul(GROUP_VALUES)? } else { head >> 1 };
        u32::try_from(count).ok()?;
        let len = if is_packed { (head >> 1) * u64::from(bits) } else { bits.div_ceil(8).into() };
        // A writer may leave out what is behind the last value.
        rest = behind.get(usize::try_from(len).ok()?..).unwrap_or_default();
    }
    Some(())
}

/// Blocks of miniblocks of differences.
fn deltas(page: &[u8]) -> Option<()> {
    // A page without values may have nothing at all.
    if page.is_empty() {
        return Some(());
    }
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
    Some(())
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

    #[test]
    fn a_number_longer_than_any_is_refused_wherever_it_stands() {
        assert_eq!(varint(&LONG), None);
        assert_eq!(hybrid(&LONG, 1), None);
        assert_eq!(hybrid(&[&[4, 1][..], &LONG].concat(), 1), None, "behind a run");
        assert_eq!(deltas(&LONG), None);
        // 128 values in 4 miniblocks, 2 values, the first is 0; then the least difference.
        let header = [0x80, 1, 4, 2, 0];
        assert_eq!(deltas(&[&header[..], &LONG].concat()), None);
        assert_eq!(deltas(&[&header[..], &[0, 1, 0, 0, 0], &[0; 4]].concat()), Some(()));
        let levels = [&11_u32.to_le_bytes()[..], &LONG].concat();
        assert_eq!(body(&levels, [0, 1], Type::INT64, 0), None);
        assert_eq!(body(&[], [0, 0], Type::INT64, 0), Some(()));
    }

    #[test]
    fn widths_and_counts_beyond_what_is_there_are_refused() {
        let header = [0x80, 1, 4, 2, 0];
        assert_eq!(deltas(&[&header[..], &[0, 65, 0, 0, 0], &[0; 999]].concat()), None);
        assert_eq!(deltas(&[&header[..], &[0, 1, 0, 0, 0], &[0; 3]].concat()), None);
        assert_eq!(deltas(&[0, 4, 2, 0]), None, "blocks without values");
        assert_eq!(deltas(&[0x80, 1, 0, 2, 0]), None, "no miniblocks");
        assert_eq!(body(&[33, 2, 0], [0, 0], Type::INT64, RLE_DICTIONARY), None);
        assert_eq!(body(&[1, 4, 0], [0, 0], Type::INT64, RLE_DICTIONARY), Some(()));
        assert_eq!(hybrid(&[0xff, 0xff, 0xff, 0xff, 0x7f], 1), None, "more than 32 bits");
    }
}
