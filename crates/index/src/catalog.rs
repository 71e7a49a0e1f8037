//! Which segments exist, where their rows are, and which rows still have packets.
//!
//! The catalog learns of segments from the directories in INDEX stripes and from the files of the
//! index directory, where each segment's Parquet file lies under its first stripe and its checksum.
//! A damaged file is found before it is parsed: by the checksums of the parts read, or where it has
//! none by that of the whole file. A file that is missing or damaged is loaded again by the caller,
//! from INDEX stripes or from packets, and stored again if the directory can be written; the cache
//! never decides whether an answer is right.
//!
//! A segment retires when the ring's tail has passed its last stripe: all packets of all its rows
//! are gone then, because rows refer to pieces of their own segment and of the one before. Rows of
//! segments that are only partly gone are judged one by one. Nothing here reads a clock: `now` is
//! an argument.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use format::directory::{DIRECTORY_MAX, SegmentEntry, Summary};
use format::head::{StripeId, VolumeId};
use format::slice::Slice;
use units::Timestamp;

use crate::error::{Error, Result};
use crate::files::Files;
use crate::filter::Needed;
use crate::segment::{FilteredFile, Segment};

/// Whether a row's packets can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packets {
    /// At least one of its pieces is in the ring.
    Held,
    /// The ring has overwritten them all; the row is kept.
    Retired,
}

/// What the index directory knows of a segment.
#[derive(Debug)]
pub enum LookUp {
    /// There is no whole file.
    Absent,
    /// No row has what is needed; so many bytes of the file say so.
    RuledOut(u64),
    /// The segment, as far as it was read.
    Found(Box<Segment>),
}

/// The segments of one volume.
#[derive(Debug)]
pub struct Catalog {
    volume: VolumeId,
    tail: u64,
    keep_sessions: Option<Duration>,
    segments: BTreeMap<StripeId, SegmentEntry>,
    files: BTreeMap<StripeId, Vec<String>>,
}

impl Catalog {
    /// An empty catalog of a volume whose oldest stripe has the sequence `tail`. With
    /// `keep_sessions`, rows outlive their packets by at most this time.
    pub fn new(volume: VolumeId, tail: u64, keep_sessions: Option<Duration>) -> Self {
        let (segments, files) = (BTreeMap::new(), BTreeMap::new());
        Self { volume, tail, keep_sessions, segments, files }
    }

    /// Takes over a directory; says whether it named a segment that was not known.
    pub fn add(&mut self, directory: &[SegmentEntry]) -> bool {
        let before = self.segments.len();
        for entry in directory.iter().filter(|entry| entry.summary.last.sequence >= self.tail) {
            self.segments.insert(entry.summary.first, *entry);
        }
        self.segments.len() > before
    }

    /// Where to read on: the INDEX stripe of the oldest segment known, whose directory lists older
    /// ones, while the ring holds any. Reading ends when [`Self::add`] learns nothing from it.
    pub fn older_directory(&self) -> Option<StripeId> {
        let oldest = self.segments.values().find(|entry| is_placed(entry))?;
        (oldest.summary.first.sequence > self.tail).then_some(oldest.index)
    }

    /// The directory for the next segment: the newest ones in the ring, newest first.
    pub fn directory(&self) -> Vec<SegmentEntry> {
        let placed = self.segments.values().rev().filter(|entry| is_placed(entry));
        placed
            .filter(|entry| !self.is_retired(&entry.summary))
            .take(DIRECTORY_MAX)
            .copied()
            .collect()
    }

    /// Takes over the files of the index directory. Files of segments that no directory named are
    /// read whole.
    pub fn add_files(&mut self, files: &dyn Files) -> Result<()> {
        self.files.clear();
        let names = files.list().map_err(|source| failed("list", "*", source))?;
        for name in names {
            if let Some((first, _)) = parse_name(&name) {
                self.files.entry(first).or_default().push(name);
            }
        }
        let unknown: Vec<StripeId> =
            self.files.keys().filter(|first| !self.segments.contains_key(first)).copied().collect();
        for first in unknown {
            if let Some(segment) = self.cached(first, files) {
                self.segments.insert(first, entry_of(&segment));
            }
        }
        Ok(())
    }

    /// Takes over a segment that was just closed or rebuilt, and stores its file. A directory that
    /// cannot be written does not matter: the INDEX stripes have the same bytes.
    pub fn store(&mut self, entry: SegmentEntry, parquet: &[u8], files: &dyn Files) {
        self.segments.insert(entry.summary.first, entry);
        self.cache(entry.summary.first, parquet, files);
    }

    /// The segments whose rows may show packets within `times`, oldest first.
    pub fn select(&self, times: &RangeInclusive<Timestamp>) -> Vec<SegmentEntry> {
        let overlaps = |summary: &Summary| {
            summary.time_min <= *times.end() && summary.time_max >= *times.start()
        };
        let shown = |summary: &Summary| self.keep_sessions.is_some() || !self.is_retired(summary);
        self.segments
            .values()
            .filter(|entry| overlaps(&entry.summary) && shown(&entry.summary))
            .copied()
            .collect()
    }

    /// Opens a segment: from its file, else from what `load` gives, which is then stored as a file.
    /// `None` when `load` has nothing either.
    pub fn open(
        &mut self,
        entry: &SegmentEntry,
        files: &dyn Files,
        load: &mut dyn FnMut(&SegmentEntry) -> Option<Vec<u8>>,
    ) -> Result<Option<Segment>> {
        match self.cached(entry.summary.first, files) {
            Some(segment) => Ok(Some(segment)),
            None => self.reload(entry, files, load),
        }
    }

    /// As [`Self::open`], but whatever file there is counts as damaged.
    pub fn reload(
        &mut self,
        entry: &SegmentEntry,
        files: &dyn Files,
        load: &mut dyn FnMut(&SegmentEntry) -> Option<Vec<u8>>,
    ) -> Result<Option<Segment>> {
        let first = entry.summary.first;
        let Some(parquet) = load(entry) else { return Ok(None) };
        let parquet = Bytes::from(parquet);
        let segment = self.check(Segment::open(parquet.clone())?)?;
        if segment.meta().first != first {
            return Err(Error::Metadata { field: "first" });
        }
        self.cache(first, &parquet, files);
        Ok(Some(segment))
    }

    /// Looks into the segment's file, unless its filter knows that no row has what is needed.
    pub fn look_up(&self, entry: &SegmentEntry, files: &dyn Files, needed: &Needed) -> LookUp {
        let first = entry.summary.first;
        match self.filtered(first, files).map(|file| (file.may_hold(needed), file)) {
            Some((Ok(false), file)) => return LookUp::RuledOut(file.read_bytes()),
            Some((Ok(true), file)) => {
                if let Some(segment) = self.whole(file, first) {
                    return LookUp::Found(Box::new(segment));
                }
            }
            Some((Err(_), _)) | None => {}
        }
        let verified = self.verified(first, files).map(Box::new);
        verified.map_or(LookUp::Absent, LookUp::Found)
    }

    /// Moves the tail and drops what retired: with its packets, or with `keep_sessions` when its
    /// last packet is older than that. A kept segment lives from its file alone, so one without is
    /// dropped as well.
    ///
    /// # Panics
    /// If `tail` is smaller than it was.
    pub fn retire(&mut self, tail: u64, now: Timestamp, files: &dyn Files) -> Result<()> {
        assert!(tail >= self.tail, "the tail of a ring only moves forward");
        self.tail = tail;
        let keep_from = self.keep_sessions.map(|keep| {
            now.plus_nanos(i64::try_from(keep.as_nanos()).map_or(i64::MIN, |nanos| -nanos))
        });
        let gone: Vec<StripeId> = self
            .segments
            .values()
            .filter(|entry| self.is_retired(&entry.summary))
            .filter(|entry| {
                let kept = keep_from.is_some_and(|from| entry.summary.time_max >= from);
                !(kept && self.files.contains_key(&entry.summary.first))
            })
            .map(|entry| entry.summary.first)
            .collect();
        for first in gone {
            self.segments.remove(&first);
            for name in self.files.remove(&first).unwrap_or_default() {
                files.remove(&name).map_err(|source| failed("remove", &name, source))?;
            }
        }
        Ok(())
    }

    /// Whether the row belongs into answers, and whether its packets can be had.
    pub fn shows(&self, slice: &Slice) -> Option<Packets> {
        if slice.pieces.iter().any(|span| span.piece.sequence >= self.tail) {
            Some(Packets::Held)
        } else {
            self.keep_sessions.map(|_| Packets::Retired)
        }
    }

    fn is_retired(&self, summary: &Summary) -> bool {
        summary.last.sequence < self.tail
    }

    /// The segment from the first of its files that is whole. An unreadable file is as good as
    /// none.
    fn cached(&self, first: StripeId, files: &dyn Files) -> Option<Segment> {
        let in_parts = self.filtered(first, files).and_then(|file| self.whole(file, first));
        in_parts.or_else(|| self.verified(first, files))
    }

    /// The first of the segment's files whose end is whole.
    fn filtered(&self, first: StripeId, files: &dyn Files) -> Option<FilteredFile> {
        let names = self.files.get(&first)?.iter();
        let ends = names.filter_map(|name| FilteredFile::open(files.open(name).ok()??).ok()?);
        ends.into_iter().find(|file| file.is_of(self.volume, first))
    }

    fn whole(&self, file: FilteredFile, first: StripeId) -> Option<Segment> {
        let segment = self.check(file.segment().ok()??).ok()?;
        (segment.meta().first == first).then_some(segment)
    }

    /// The segment from the first of its files that matches the checksum in its name.
    fn verified(&self, first: StripeId, files: &dyn Files) -> Option<Segment> {
        self.files.get(&first)?.iter().find_map(|name| {
            let parquet = files.read(name).ok()??;
            let (_, crc) = parse_name(name)?;
            let whole = checksum(CrcAlgorithm::Crc64Nvme, &parquet) == crc;
            let segment = whole.then(|| Segment::open(Bytes::from(parquet)).ok())??;
            self.check(segment).ok().filter(|segment| segment.meta().first == first)
        })
    }

    fn cache(&mut self, first: StripeId, parquet: &[u8], files: &dyn Files) {
        let name = file_name(first, checksum(CrcAlgorithm::Crc64Nvme, parquet));
        // A damaged file is found by its checksum and loaded again from the ring, as long as that
        // has it: only rows that are to outlive their packets need the file itself.
        let durable = |()| if self.keep_sessions.is_some() { files.sync(&name) } else { Ok(()) };
        if files.write_atomic(&name, parquet).and_then(durable).is_ok() {
            let names = self.files.entry(first).or_default();
            names.retain(|known| *known != name);
            names.push(name);
        }
    }

    fn check(&self, segment: Segment) -> Result<Segment> {
        if segment.meta().volume != self.volume {
            return Err(Error::Metadata { field: "volume" });
        }
        if !segment.is_current() {
            return Err(Error::Metadata { field: "version" });
        }
        Ok(segment)
    }
}

/// Whether the ring holds its INDEX, as far as is known: no stripe has the sequence 0.
fn is_placed(entry: &SegmentEntry) -> bool {
    entry.index.sequence > 0
}

fn entry_of(segment: &Segment) -> SegmentEntry {
    let (index, parts) = Default::default();
    SegmentEntry { summary: segment.summary(), index, parts, bytes: segment.size_bytes() }
}

fn failed(action: &'static str, name: &str, source: std::io::Error) -> Error {
    Error::Files { action, name: name.to_owned(), source }
}

/// `SEQUENCE-SUB-CRC64.parquet`: names sort as the segments were written.
fn file_name(first: StripeId, crc: u64) -> String {
    format!("{:020}-{:05}-{crc:016x}.parquet", first.sequence, first.sub)
}

fn parse_name(name: &str) -> Option<(StripeId, u64)> {
    let mut fields = name.strip_suffix(".parquet")?.split('-');
    let sequence = fields.next()?.parse().ok()?;
    let first = StripeId { sequence, sub: fields.next()?.parse().ok()? };
    let crc = u64::from_str_radix(fields.next()?, 16).ok()?;
    // Exactly our own spelling, so that every name has one meaning and every meaning one name.
    (file_name(first, crc) == name).then_some((first, crc))
}
