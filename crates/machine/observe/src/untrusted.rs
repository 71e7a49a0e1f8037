//! What is handed to this process from outside and read here, for tests and fuzz targets that give
//! any bytes: they end, without a panic, and take memory that is bounded by what came.
//!
//! Not for use: what is read is thrown away, but for a number by which a test sees that something
//! was read.

use crate::io::{read_any_events, read_any_text};
use crate::{perf, processor_counters, sampling, symbols, tracepoints};

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
    let processors = processor_counters::counters(&text);
    let busy = processors.is_some_and(|found| found.all.busy_ns() > 0);
    usize::from(busy)
        + perf::listed(&text).len()
        + read_any_text(&text)
        + symbols::read_any_text(&text)
}
