//! The log of writes that QEMU keeps of a disk, in the form of the kernel's dm-log-writes
//! (Documentation/admin-guide/device-mapper/log-writes.rst): sector 0 says how many entries there
//! are; each entry has a sector of its own, and behind it the data that was written.
//!
//! The order is that of completion. A write that completed before a flush was asked for stands
//! before it, so a disk that holds just the first entries is one that a power cut may leave.

use std::ops::Range;

use anyhow::{Context, Result, ensure};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const DISCARD: u64 = 4;

/// Bytes of a mark: a sector on any disk.
pub(crate) const MARK_BYTES: usize = 4096;
const MARK_MAGIC: &[u8; 16] = b"lab acknowledged";

/// A block that says how many packets were acknowledged when it was written.
pub(crate) fn mark(stored: u64) -> [u8; MARK_BYTES] {
    let mut block = [0; MARK_BYTES];
    let fields = MARK_MAGIC.iter().copied().chain(stored.to_le_bytes());
    block.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    block
}

/// The number in a mark.
pub(crate) fn marked(block: &[u8]) -> Option<u64> {
    let number = block.strip_prefix(MARK_MAGIC)?.get(..8)?;
    number.try_into().ok().map(u64::from_le_bytes)
}

/// What a disk was asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry<'a> {
    /// Bytes to an offset.
    Write { offset: usize, data: &'a [u8] },
    /// Everything before this is durable.
    Flush,
    /// The bytes of a range mean nothing any more.
    Discard,
}

impl Entry<'_> {
    /// Whether it writes to a place in a range of the disk.
    pub(crate) fn is_within(&self, range: &Range<usize>) -> bool {
        matches!(self, Entry::Write { offset, .. } if range.contains(offset))
    }
}

/// Reads a log.
pub(crate) fn read(log: &[u8]) -> Result<Vec<Entry<'_>>> {
    ensure!(field(log, 0)? == MAGIC && field(log, 8)? == VERSION, "this is no log of writes");
    let count = field(log, 16)?;
    let sector_bytes = usize::try_from(field(log, 24)? & u64::from(u32::MAX))?;
    ensure!(sector_bytes.is_power_of_two(), "a sector has {sector_bytes} bytes");
    let mut at = sector_bytes;
    let mut entries = Vec::new();
    for _ in 0..count {
        let offset = usize::try_from(field(log, at)?)? * sector_bytes;
        let size = usize::try_from(field(log, at + 8)?)? * sector_bytes;
        let flags = field(log, at + 16)?;
        at += sector_bytes;
        if flags & DISCARD != 0 {
            entries.push(Entry::Discard);
            continue;
        }
        if size > 0 {
            let data = log.get(at..at + size).context("the log is cut off")?;
            entries.push(Entry::Write { offset, data });
            at += size;
        }
        if flags & FLUSH != 0 {
            entries.push(Entry::Flush);
        }
    }
    Ok(entries)
}

fn field(log: &[u8], at: usize) -> Result<u64> {
    let bytes = log.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).context("the log is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[u64]) -> Vec<u8> {
        let mut sector: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        sector.resize(512, 0);
        sector
    }

    #[test]
    fn entries_come_back_in_their_order_and_a_cut_log_is_refused() {
        let mut log = numbers(&[MAGIC, 1, 4, 512]);
        log.extend(numbers(&[3, 2, 0, 0]));
        log.extend([7; 1024]);
        log.extend(numbers(&[0, 0, FLUSH, 0]));
        log.extend(numbers(&[8, 100, DISCARD, 0]));
        log.extend(numbers(&[1, 1, 0, 0]));
        log.extend([9; 512]);
        let expected = [
            Entry::Write { offset: 1536, data: &[7; 1024] },
            Entry::Flush,
            Entry::Discard,
            Entry::Write { offset: 512, data: &[9; 512] },
        ];
        assert_eq!(read(&log).unwrap(), expected);
        assert!(read(&log[..log.len() - 1]).is_err());
        assert!(read(&log[1..]).is_err());
    }

    #[test]
    fn a_mark_says_its_number() {
        assert_eq!(marked(&mark(77)), Some(77));
        assert_eq!(marked(&[0; MARK_BYTES]), None);
    }
}
