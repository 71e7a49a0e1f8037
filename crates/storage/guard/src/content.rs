//! What lies on a device: signatures on it and its partitions, a volume, or data that no program
//! signed.

use std::path::Path;

use blockdev::{signature, usage};
use device::{Device, ROW_SIZE, ReadAt};
use format::superblock::{SUPERBLOCK_COPIES, Superblock, SuperblockError, copy_offset};
use units::Random;
use units::number::to_u64;

use crate::refusal::{Content, Refusal};

/// In the first and the last row of a device that was written to for a while and holds nothing.
pub const STAMP: &[u8] = b"wirespool qualify: scratch content, of no value\n";
/// Rows that are looked at for data without a signature, besides the first and the last.
const SAMPLES: u64 = 64;

/// Everything that the user may want to keep, the clearest first.
pub(crate) fn look(path: &Path, reader: &dyn ReadAt, seed: u64) -> Result<Vec<Content>, Refusal> {
    let signed = signature::probe_all(reader.size_bytes(), |at, into| reader.read_at(at, into))?;
    let mut found: Vec<Content> =
        signed.into_iter().map(|signature| Content::Foreign(signature, None)).collect();
    for (name, node) in usage::partitions(path)? {
        // One that the kernel shows and that cannot be opened has nothing that could be looked at.
        let Ok(partition) = device::open_read(&node) else { continue };
        let read = |at, into: &mut [u8]| partition.read_at(at, into);
        let signed = signature::probe_all(partition.size_bytes(), read)?;
        found.extend(signed.into_iter().map(|it| Content::Foreign(it, Some(name.clone()))));
        if is_volume(partition.as_ref())? {
            found.push(Content::Volume);
        }
    }
    if is_volume(reader)? {
        found.push(Content::Volume);
    }
    // Consent to the loss of what signed the content includes the content.
    if found.is_empty() {
        found.extend(unsigned(reader, seed)?.map(Content::Data));
    }
    Ok(found)
}

/// A damaged volume is one, too.
fn is_volume(reader: &dyn ReadAt) -> Result<bool, device::Error> {
    let size = reader.size_bytes();
    let mut row = [0; ROW_SIZE];
    if size < 4 * to_u64(ROW_SIZE) {
        return Ok(false);
    }
    for copy in 0..SUPERBLOCK_COPIES {
        reader.read_at(copy_offset(copy, size), &mut row)?;
        if !matches!(Superblock::decode(&row, copy), Err(SuperblockError::Magic)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where a row is neither blank nor of our own making.
fn unsigned(reader: &dyn ReadAt, seed: u64) -> Result<Option<u64>, device::Error> {
    let rows = reader.size_bytes() / to_u64(ROW_SIZE);
    let mut row = [0; ROW_SIZE];
    if rows == 0 {
        return Ok(None);
    }
    reader.read_at(0, &mut row)?;
    if row.starts_with(STAMP) {
        return Ok(None);
    }
    let mut first = (!is_blank(&row)).then_some(0);
    let mut random = Random::new(seed);
    let places = (0..SAMPLES).map(|_| random.below(rows)).chain([rows - 1]);
    for offset in places.map(|row| row * to_u64(ROW_SIZE)).filter(|offset| *offset > 0) {
        reader.read_at(offset, &mut row)?;
        if is_blank(&row) || row.starts_with(STAMP) {
            continue;
        }
        if !is_scratch(&row, offset) {
            return Ok(Some(first.unwrap_or(offset)));
        }
        // A run that was killed left no stamp at the ends: its rows say whose they are. Of the
        // first row the stamp would be zero, which says nothing.
        first = None;
    }
    Ok(first)
}

/// A row as a qualification writes it begins with its own place (`qualify`, stream.rs).
fn is_scratch(row: &[u8], offset: u64) -> bool {
    row.first_chunk().is_some_and(|stamp| u64::from_le_bytes(*stamp) == offset)
}

fn is_blank(row: &[u8]) -> bool {
    [0, 0xff].iter().any(|value| row.iter().all(|byte| byte == value))
}

/// Marks a device as holding nothing, durably.
pub fn stamp_ends(writer: &mut dyn Device) -> Result<(), device::Error> {
    let mut row = [0; ROW_SIZE];
    row.iter_mut().zip(STAMP).for_each(|(byte, stamp)| *byte = *stamp);
    writer.write_at(0, &row)?;
    writer.write_at(writer.size_bytes() - to_u64(ROW_SIZE), &row)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn found(image: &[u8]) -> Option<u64> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), image).unwrap();
        let reader = device::open_read(file.path()).unwrap();
        unsigned(reader.as_ref(), 1).unwrap()
    }

    fn scratch(len: usize) -> Vec<u8> {
        let mut image = vec![7; len];
        for (row, offset) in image.chunks_exact_mut(ROW_SIZE).zip((0_u64..).step_by(ROW_SIZE)) {
            row[..8].copy_from_slice(&offset.to_le_bytes());
        }
        image
    }

    #[test]
    fn blank_and_stamped_devices_hold_nothing() {
        assert_eq!(found(&vec![0; MIB]), None);
        assert_eq!(found(&vec![0xff; MIB]), None);
        let mut stamped = vec![5; MIB];
        stamped[..STAMP.len()].copy_from_slice(STAMP);
        assert_eq!(found(&stamped), None);
    }

    #[test]
    fn what_a_killed_run_left_is_known_by_its_rows_and_other_data_is_not() {
        assert_eq!(found(&scratch(MIB)), None);
        let mut half = scratch(MIB);
        half[MIB / 2..].fill(0);
        assert_eq!(found(&half), None);
        half[MIB / 2..].fill(7);
        assert!(found(&half).is_some());
        let mut first = vec![0; MIB];
        first[100] = 1;
        assert_eq!(found(&first), Some(0));
        assert!(found(&vec![7; MIB]).is_some());
    }
}
