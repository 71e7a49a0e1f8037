//! What is handed to this process from outside and read here, for tests and fuzz targets that give
//! any bytes: they end, without a panic, and take memory that is bounded by what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::io::{filesystem, read_any_events, read_any_text};
use crate::processes::Stat;
use crate::{
    control, drive, perf, processor_counters, sampling, signature, symbols, tracepoints, usage,
};

/// Disks are read in rows of this size.
const ROW: usize = 4096;

/// Records of `perf_event_open(2)`: first the text that says how they are laid out, ended by a
/// zero.
pub fn perf_records(bytes: &[u8]) -> usize {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (layout, records) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let events = tracepoints::read_any_records(&String::from_utf8_lossy(layout), records);
    events.len() + sampling::read_any_records(records).len()
}

/// Events of `fanotify(7)`.
pub fn file_events(bytes: &[u8]) -> usize {
    let (all, named) = read_any_events(bytes);
    assert!(named <= all && all <= bytes.len() / 24, "an event takes 24 bytes at least");
    all
}

/// Files of `/proc` and `/sys`.
pub fn texts(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let stats = text.lines().filter_map(Stat::parse).count();
    let filesystems = text.lines().filter_map(filesystem).count();
    drop(usage::unescape(&text));
    let processors = processor_counters::counters(&text);
    let busy = processors.is_some_and(|found| found.all.busy_ns() > 0);
    stats
        + filesystems
        + usize::from(busy)
        + perf::listed(&text).len()
        + read_any_text(&text)
        + symbols::read_any_text(&text)
}

/// A question to a control socket, in parts: each its length in a byte, and that many bytes.
pub fn control_question(parts: &[u8]) -> usize {
    let line = control::read_any_question(parts);
    assert!(line.as_ref().is_none_or(|line| line.len() < 2 * ROW), "a question is short");
    usize::from(line.is_some())
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
