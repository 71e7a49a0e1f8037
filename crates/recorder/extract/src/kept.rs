//! Rows whose packets the ring has overwritten: which the index has of a segment, which files of
//! the index directory keep, and of which times such rows were forgotten on request.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use format::head::StripeId;
use format::session_row::SessionRow;
use index::{Columns, Files, Segment};
use units::{Clock, Sequence, Times, Timestamp};

use crate::archive::Archive;
use crate::wanted::PIECES;
use crate::{Error, Options};

/// How the names of files end that say of which times rows were forgotten.
const ENDING: &str = ".forgotten";

/// Rows of segments whose packets are all overwritten.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeptRows {
    /// Number of rows.
    pub rows: u64,
    /// Their times.
    pub times: Times,
}

/// The rows whose packets are overwritten of the segments that begin with these stripes.
///
/// # Errors
/// When the volume cannot be read.
pub fn kept_rows(
    options: &Options,
    segments: &BTreeSet<StripeId>,
    clock: &dyn Clock,
) -> Result<KeptRows, Error> {
    let mut archive = Archive::open(options, clock.realtime())?;
    let tail = archive.tail();
    let mut kept = KeptRows::default();
    for entry in archive.parts().into_iter().filter_map(|part| part.segment) {
        if !segments.contains(&entry.summary.first) {
            continue;
        }
        // Of a segment without a whole index nothing but the packets is left.
        let Some(segment) = archive.segment(&entry)? else { continue };
        let mut times: Option<(Timestamp, Timestamp)> = None;
        let all = Timestamp::MIN..=Timestamp::MAX;
        segment.rows(Columns::Named(&[PIECES]), &all, &mut |_, row| {
            if !is_held(&row, tail) {
                kept.rows += 1;
                let (from, to) = times.unwrap_or((row.start, row.end));
                times = Some((from.min(row.start), to.max(row.end)));
            }
            ControlFlow::Continue(())
        })?;
        if let Some((from, to)) = times {
            kept.times.add(&Times::of(from, to));
        }
    }
    Ok(kept)
}

/// Whether the ring has any packet of a row.
pub fn is_held(row: &SessionRow, tail: Sequence) -> bool {
    row.pieces.iter().any(|span| span.piece.sequence >= tail)
}

/// The files of the index directory that hold a segment of this volume, with its first stripe.
///
/// # Errors
/// When the volume cannot be read.
pub fn index_files(options: &Options, clock: &dyn Clock) -> Result<Vec<(String, StripeId)>, Error> {
    let archive = Archive::open(options, clock.realtime())?;
    let (files, volume) = (archive.cache.as_ref(), archive.volume());
    let segment = |name: &str| {
        let content = files.open(name).ok()??;
        let segment = Segment::open_in_parts(content).ok()??;
        (segment.meta().volume == volume).then_some(segment.meta().first)
    };
    let names = files.list().unwrap_or_default();
    Ok(names.into_iter().filter_map(|name| segment(&name).map(|first| (name, first))).collect())
}

/// Names of files in the index directory that say that rows of these times were forgotten.
pub fn names_of_forgotten(times: &Times) -> Vec<String> {
    let hex = |time: Timestamp| format!("{:016x}", time.0.cast_unsigned());
    times.iter().map(|(from, to)| format!("{}-{}{ENDING}", hex(from), hex(to))).collect()
}

/// Whether a file of this name says that rows were forgotten.
pub fn is_of_forgotten(name: &str) -> bool {
    parse(name).is_some()
}

fn parse(name: &str) -> Option<Times> {
    let (from, to) = name.strip_suffix(ENDING)?.split_once('-')?;
    let time = |text: &str| {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let time = is_hex.then(|| u64::from_str_radix(text, 16).ok())??;
        Some(Timestamp(time.cast_signed()))
    };
    let (from, to) = (time(from)?, time(to)?);
    (from <= to).then(|| Times::of(from, to))
}

/// The times of rows that were forgotten, by the files of an index directory.
pub(crate) fn forgotten(files: &dyn Files) -> Times {
    let mut times = Times::default();
    for found in files.list().unwrap_or_default().iter().filter_map(|name| parse(name)) {
        times.add(&found);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_times_and_nothing_else_is_such_a_name() {
        let mut times = Times::of(Timestamp(-5), Timestamp(7));
        times.add(&Times::of(Timestamp(100), Timestamp(i64::MAX)));
        let names = names_of_forgotten(&times);
        assert_eq!(names.len(), 2);
        let files = index::MemoryFiles::default();
        for name in names.iter().map(String::as_str).chain(["x.forgotten", "a.parquet"]) {
            files.write_atomic(name, b"").unwrap();
        }
        assert_eq!(forgotten(&files), times);
        let wrong = ["", ".forgotten", "+00000000000001-0000000000000002.forgotten"];
        assert!(wrong.into_iter().all(|name| !is_of_forgotten(name)));
        assert!(!is_of_forgotten("0000000000000002-0000000000000001.forgotten"));
    }
}
