//! What is handed to this process from outside and read here, for tests and fuzz targets that give
//! any bytes: they end, without a panic, and take memory that is bounded by what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::placement::filesystem;
use crate::{drive, signature, usage};

/// Disks are read in rows of this size.
const ROW: usize = 4096;

/// Files of `/proc`.
pub fn texts(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    drop(usage::unescape(&text));
    text.lines().filter_map(filesystem).count()
}

/// What a drive answers: a health log, an identity, sense data.
pub fn drive_answer(bytes: &[u8]) -> usize {
    let answers = drive::read_any_answer(bytes);
    answers.iter().filter(|(health, _)| health.is_failing).count()
}

/// A disk: eight bytes of its size, and rows that repeat.
pub fn signatures(bytes: &[u8]) -> usize {
    let Some((size, content)) = bytes.split_first_chunk::<8>() else { return 0 };
    let size_bytes = u64::from_le_bytes(*size);
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(ROW).max(ROW), 0);
    let mut reads = 0;
    let read = |at: u64, into: &mut [u8]| -> Result<(), ()> {
        let place = usize::try_from(at % u64::try_from(content.len()).map_err(|_| ())?);
        let row = place.ok().and_then(|place| content.get(place..place + ROW)).ok_or(())?;
        assert!(at.is_multiple_of(4096) && into.len() == ROW, "whole rows are read");
        assert!(at.checked_add(4096).is_some_and(|end| end <= size_bytes), "rows of the disk");
        reads += 1;
        into.copy_from_slice(row);
        Ok(())
    };
    let found = signature::probe_all(size_bytes, read).unwrap_or_default();
    assert!(reads < 1000, "few rows are read, whatever they hold");
    found.len()
}
