//! Which segments exist, where their rows are, and which rows still have packets.
//!
//! The catalog learns of segments from the directories in INDEX stripes and from the files of the
//! index directory, where each segment's Parquet file lies under its first stripe, its checksum and
//! the identity of its stripes. A file counts only while the ring says the same of them
//! ([`Catalog::confirm`]): a volume that was put back to an older image has others. A damaged file
//! is found before it is parsed: by the checksums of the parts read, or where it has none by that
//! of the whole file. A file that is missing, stale or damaged is loaded again by the caller, from
//! INDEX stripes or from packets, and stored again if the directory can be written; the cache never
//! decides whether an answer is right.
//!
//! A segment retires when the ring's tail has passed its last stripe: all packets of all its rows
//! are gone then, because rows refer to pieces of their own segment and of the one before. Rows of
//! segments that are only partly gone are judged one by one. Nothing here reads a clock: `now` is
//! an argument.

use core::ops::{Bound, RangeInclusive};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use format::directory::{DIRECTORY_MAX, SegmentEntry, Summary};
use format::head::{StripeId, VolumeId};
use format::session_row::SessionRow;
use units::{Sequence, Timestamp};

use crate::error::{Error, Result};
use crate::file_name::{FileName, Identity};
use crate::files::Files;
use crate::filter::Needed;
use crate::group::{self, Group, Member};
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
    tail: Sequence,
    keep_sessions: Option<Duration>,
    segments: BTreeMap<StripeId, SegmentEntry>,
    /// By first stripe. Which of them count depends on `identities`.
    files: BTreeMap<StripeId, Vec<FileName>>,
    /// Of segments' stripes, as the ring has them.
    identities: BTreeMap<StripeId, Identity>,
    /// Filters over groups of segments.
    groups: Vec<Group>,
}

/// What filters over groups of segments know of a question.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuledOut {
    /// Segments in which no row has what is needed, by their first stripes.
    pub segments: BTreeSet<StripeId>,
    /// Bytes read to know it.
    pub read_bytes: u64,
}

/// What the ring says of segments that end with these stripes; `None` where it does not have them,
/// or where that cannot be read.
pub type IdentitiesOf<'a> = &'a dyn Fn(&[StripeId]) -> Vec<Option<Identity>>;

impl Catalog {
    /// An empty catalog of a volume whose oldest stripe has the sequence `tail`. With
    /// `keep_sessions`, rows outlive their packets by at most this time.
    pub fn new(volume: VolumeId, tail: Sequence, keep_sessions: Option<Duration>) -> Self {
        let (segments, files) = (BTreeMap::new(), BTreeMap::new());
        let (identities, groups) = (BTreeMap::new(), Vec::new());
        Self { volume, tail, keep_sessions, segments, files, identities, groups }
    }

    /// Takes over a directory; says whether it named a segment that was not known.
    pub fn add(&mut self, directory: &[SegmentEntry]) -> bool {
        let (before, tail) = (self.segments.len(), self.tail);
        for entry in directory.iter().filter(|entry| entry.summary.last.sequence >= tail) {
            self.insert(*entry);
        }
        self.segments.len() > before
    }

    /// Of segments that share stripes the one that was learned of first counts: the rows of both
    /// would count packets twice. A directory comes before the file of a segment whose own was
    /// lost, and which was indexed again since. Says whether it was taken.
    fn insert(&mut self, entry: SegmentEntry) -> bool {
        let Summary { first, last, .. } = entry.summary;
        let before = self.segments.range(..=last).next_back();
        let overlaps = |(other, known): (&StripeId, &SegmentEntry)| {
            *other != first && known.summary.last >= first
        };
        if before.is_some_and(overlaps) {
            return false;
        }
        self.segments.insert(first, entry);
        true
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
    /// read whole; they count if the ring has their stripes, or has had them before the tail.
    pub fn add_files(&mut self, files: &dyn Files, ring: IdentitiesOf<'_>) -> Result<()> {
        self.list(files)?;
        let unknown: Vec<StripeId> =
            self.files.keys().filter(|first| !self.segments.contains_key(first)).copied().collect();
        let named = |first| self.files.get(&first).into_iter().flatten();
        let unknown = unknown.into_iter().flat_map(|first| named(first).copied());
        let found: Vec<(FileName, SegmentEntry)> = unknown
            .filter_map(|name| Some((name, entry_of(&self.in_file(name, files)?))))
            .collect();
        let (retired, held): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, entry)| self.is_retired(&entry.summary));
        let lasts: Vec<StripeId> = held.iter().map(|(_, entry)| entry.summary.last).collect();
        let identities = if lasts.is_empty() { Vec::new() } else { ring(&lasts) };
        for ((name, entry), identity) in held.into_iter().zip(identities) {
            if identity == Some(name.identity) && self.insert(entry) {
                self.identities.insert(name.first, name.identity);
            }
        }
        for (name, entry) in retired {
            if self.insert(entry) {
                self.identities.insert(name.first, name.identity);
            }
        }
        Ok(())
    }

    /// Lists the index directory. Files that do not say which stripes they cover are removed.
    fn list(&mut self, files: &dyn Files) -> Result<()> {
        self.files.clear();
        self.groups.clear();
        for name in files.list().map_err(|source| failed("list", "*", source))? {
            if let Some(parsed) = FileName::parse(&name) {
                self.files.entry(parsed.first).or_default().push(parsed);
            } else if Group::is_name(&name) {
                self.groups.extend(Group::open(&name, self.volume, files));
            } else if FileName::is_outdated(&name) {
                // Where it cannot be removed it does not count either.
                drop(files.remove(&name));
            }
        }
        Ok(())
    }

    /// Removes the files of segments that begin behind `newest`, which the ring does not have:
    /// they were written in a future that was given up when the volume was put back to an older
    /// image. Only the writer of the volume knows that, and only before anything is written.
    pub fn drop_future(&mut self, newest: StripeId, files: &dyn Files) -> Result<()> {
        self.list(files)?;
        let future: Vec<StripeId> =
            self.files.keys().filter(|&&first| first > newest).copied().collect();
        for first in future {
            for name in self.files.remove(&first).unwrap_or_default() {
                remove(name, files)?;
            }
        }
        Ok(())
    }

    /// Learns which stripes the ring has where the segment that begins with `first` ends. Its files
    /// count that are of these stripes; others are removed. Without an identity none counts, none
    /// is removed, and none is stored.
    pub fn confirm(&mut self, first: StripeId, identity: Option<Identity>, files: &dyn Files) {
        let Some(identity) = identity else {
            self.identities.remove(&first);
            return;
        };
        self.identities.insert(first, identity);
        let names = self.files.get_mut(&first);
        let stale = names.map(|names| names.extract_if(.., |name| name.identity != identity));
        for name in stale.into_iter().flatten() {
            // Where it cannot be removed it does not count either.
            drop(remove(name, files));
        }
    }

    /// Takes over a segment that was just closed or rebuilt, and stores its file, if its stripes
    /// were confirmed. A directory that cannot be written does not matter: the INDEX stripes have
    /// the same bytes.
    pub fn store(&mut self, entry: SegmentEntry, parquet: &[u8], files: &dyn Files) {
        drop(self.keep(entry, parquet, files));
    }

    /// The same, for rows that are to outlive their packets: those live from the file alone.
    ///
    /// # Errors
    /// When its file could not be stored; the segment is taken over all the same.
    pub fn keep(
        &mut self,
        entry: SegmentEntry,
        parquet: &[u8],
        files: &dyn Files,
    ) -> std::io::Result<()> {
        self.segments.insert(entry.summary.first, entry);
        self.cache(entry.summary.first, parquet, files)
    }

    /// Rows are to outlive their packets.
    pub fn keeps_rows(&self) -> bool {
        self.keep_sessions.is_some()
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

    /// The segment that follows one.
    pub fn behind(&self, entry: &SegmentEntry) -> Option<SegmentEntry> {
        let behind = (Bound::Excluded(entry.summary.last), Bound::Unbounded);
        self.segments.range(behind).map(|(_, next)| *next).next()
    }

    /// The segment in front of one.
    pub fn in_front(&self, entry: &SegmentEntry) -> Option<SegmentEntry> {
        let in_front = self.segments.range(..entry.summary.first);
        in_front.map(|(_, before)| *before).next_back()
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
        // A directory that cannot be written does not matter here.
        drop(self.cache(first, &parquet, files));
        Ok(Some(segment))
    }

    /// The segments that groups of them rule out; whatever is wrong with a group, it rules out
    /// nothing.
    pub fn rule_out(&self, needed: &Needed) -> RuledOut {
        let mut ruled_out = RuledOut::default();
        if needed.is_unknown_to_groups() {
            return ruled_out;
        }
        for group in &self.groups {
            let Ok(answer) = group.ask(needed) else { continue };
            ruled_out.read_bytes += answer.read_bytes;
            let members = group.members.iter().map(|member| member.name).filter(|name| {
                let counts = self.names(name.first).any(|known| known == *name);
                counts && !answer.candidates.contains(&name.first)
            });
            ruled_out.segments.extend(members.map(|name| name.first));
        }
        ruled_out
    }

    /// Confirms segments by groups: where the ring has the newest of a group's segments that it
    /// holds, it has all of them, for the identity of one covers all stripes before it. Returns
    /// those that follow a known segment without a stripe with packets in between.
    pub fn confirm_groups(&mut self, ring: IdentitiesOf<'_>) -> BTreeSet<StripeId> {
        let mut follow = BTreeSet::new();
        for group in &self.groups {
            let known = |member: &&Member| self.segments.contains_key(&member.name.first);
            let members: Vec<&Member> = group.members.iter().filter(known).collect();
            let newest = members.last().and_then(|member| {
                Some((member.name.identity, self.segments.get(&member.name.first)?.summary.last))
            });
            let Some((identity, last)) = newest.filter(|(_, last)| last.sequence >= self.tail)
            else {
                continue;
            };
            if ring(&[last]).first() != Some(&Some(identity)) {
                continue;
            }
            for member in members {
                self.identities.insert(member.name.first, member.name.identity);
                if member.behind.is_some_and(|behind| self.segments.contains_key(&behind)) {
                    follow.insert(member.name.first);
                }
            }
        }
        follow
    }

    /// Whether the ring is known to have the segment's stripes.
    pub fn is_confirmed(&self, first: StripeId) -> bool {
        self.identities.contains_key(&first)
    }

    /// Makes filters over groups of the segments whose files count, where enough have none; says
    /// how many were made. `behind` has, of segments, the one before, if no stripe with packets
    /// lies between the two.
    pub fn make_groups(
        &mut self,
        files: &dyn Files,
        behind: &BTreeMap<StripeId, StripeId>,
    ) -> Result<usize> {
        let named = |first: StripeId| {
            let name = self.names(first).next()?;
            Some(Member { name, behind: behind.get(&first).copied() })
        };
        let members: Vec<Member> = self.files.keys().filter_map(|&first| named(first)).collect();
        if group::are_made(&members, &self.groups) {
            return Ok(0);
        }
        let made = group::make(self.volume, &members, core::mem::take(&mut self.groups), files)?;
        let listed = files.list().map_err(|source| failed("list", "*", source))?;
        let groups = listed.iter().filter(|name| Group::is_name(name));
        self.groups = groups.filter_map(|name| Group::open(name, self.volume, files)).collect();
        Ok(made)
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
    pub fn retire(&mut self, tail: Sequence, now: Timestamp, files: &dyn Files) -> Result<()> {
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
        for first in gone.into_iter().chain(self.forgotten()) {
            self.segments.remove(&first);
            self.identities.remove(&first);
            for name in self.files.remove(&first).unwrap_or_default() {
                remove(name, files)?;
            }
        }
        Ok(())
    }

    /// Removes the filters over groups in which any segment is not known: what is erased leaves no
    /// trace in them. Those of segments that are left are made anew when they are needed.
    pub fn drop_groups(&mut self, files: &dyn Files) -> Result<()> {
        self.groups.clear();
        for name in files.list().map_err(|source| failed("list", "*", source))? {
            if !Group::is_name(&name) {
                continue;
            }
            let group = Group::open(&name, self.volume, files);
            let is_known = |member: &Member| self.segments.contains_key(&member.name.first);
            match group.filter(|group| group.members.iter().all(is_known)) {
                Some(group) => self.groups.push(group),
                None => {
                    files.remove(&name).map_err(|source| failed("remove", &name, source))?;
                }
            }
        }
        Ok(())
    }

    /// Segments that only a file names and nothing keeps: the ring has passed the next one's
    /// begin.
    fn forgotten(&self) -> Vec<StripeId> {
        if self.keep_sessions.is_some() {
            return Vec::new();
        }
        let next = self.files.keys().skip(1);
        let passed = self.files.keys().zip(next).filter(|(_, next)| next.sequence <= self.tail);
        passed.map(|(first, _)| *first).filter(|first| !self.segments.contains_key(first)).collect()
    }

    /// Whether the row belongs into answers, and whether its packets can be had.
    pub fn shows(&self, slice: &SessionRow) -> Option<Packets> {
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

    /// The segment's files that are of the stripes in the ring.
    fn names(&self, first: StripeId) -> impl Iterator<Item = FileName> + use<'_> {
        let identity = self.identities.get(&first);
        let names = self.files.get(&first).into_iter().flatten();
        names.filter(move |name| Some(&name.identity) == identity).copied()
    }

    /// The first of the segment's files whose end is whole.
    fn filtered(&self, first: StripeId, files: &dyn Files) -> Option<FilteredFile> {
        let open = |name: FileName| files.open(&name.to_text()).ok()?;
        let ends = self.names(first).filter_map(|name| FilteredFile::open(open(name)?).ok()?);
        ends.into_iter().find(|file| file.is_of(self.volume, first))
    }

    fn whole(&self, file: FilteredFile, first: StripeId) -> Option<Segment> {
        let segment = self.check(file.segment().ok()??).ok()?;
        (segment.meta().first == first).then_some(segment)
    }

    /// The segment from the first of its files that matches the checksum in its name.
    fn verified(&self, first: StripeId, files: &dyn Files) -> Option<Segment> {
        self.names(first).find_map(|name| self.in_file(name, files))
    }

    /// The segment in a file that matches the checksum in its name.
    fn in_file(&self, name: FileName, files: &dyn Files) -> Option<Segment> {
        let parquet = files.read(&name.to_text()).ok()??;
        let whole = checksum(CrcAlgorithm::Crc64Nvme, &parquet) == name.crc;
        let segment = whole.then(|| Segment::open(Bytes::from(parquet)).ok())??;
        self.check(segment).ok().filter(|segment| segment.meta().first == name.first)
    }

    /// Without knowing which stripes it covers no file is worth having.
    fn cache(&mut self, first: StripeId, parquet: &[u8], files: &dyn Files) -> std::io::Result<()> {
        let Some(&identity) = self.identities.get(&first) else {
            return Err(std::io::Error::other("the ring does not say which stripes it is of"));
        };
        let crc = checksum(CrcAlgorithm::Crc64Nvme, parquet);
        let name = FileName { first, crc, identity };
        let text = name.to_text();
        // A damaged file is found by its checksum and loaded again from the ring, as long as that
        // has it: only rows that are to outlive their packets need the file itself.
        let durable = |()| if self.keep_sessions.is_some() { files.sync(&text) } else { Ok(()) };
        files.write_atomic(&text, parquet).and_then(durable)?;
        let names = self.files.entry(first).or_default();
        names.retain(|known| *known != name);
        names.push(name);
        Ok(())
    }

    fn check(&self, segment: Segment) -> Result<Segment> {
        if segment.meta().volume != self.volume {
            return Err(Error::Metadata { field: "volume" });
        }
        if !segment.has_places() {
            return Err(Error::Metadata { field: "version" });
        }
        Ok(segment)
    }
}

/// Whether the ring holds its INDEX, as far as is known: no stripe has the sequence 0.
fn is_placed(entry: &SegmentEntry) -> bool {
    entry.index.sequence > Sequence(0)
}

fn entry_of(segment: &Segment) -> SegmentEntry {
    let (index, parts) = Default::default();
    SegmentEntry { summary: segment.summary(), index, parts, bytes: segment.size_bytes() }
}

fn failed(action: &'static str, name: &str, source: std::io::Error) -> Error {
    Error::Files { action, name: name.to_owned(), source }
}

fn remove(name: FileName, files: &dyn Files) -> Result<()> {
    let name = name.to_text();
    files.remove(&name).map_err(|source| failed("remove", &name, source))
}
