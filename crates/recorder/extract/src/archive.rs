//! A volume opened for reading, with what is known of its segments.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::thread;

use completeness::{Asking, Standing, standing};
use format::directory::SegmentEntry;
use format::head::{Head, Kind, StripeId, VolumeId};
use index::{Catalog, Files, Identity, IndexKeys, LookUp, Needed, Segment};
use indexer::{SegmentsBefore, Workers};
use packet_output::MergeMemory;
use units::{EachSequence, Sequence, Timestamp};
use volume::{Reader, Span};

use crate::cache::{self, NoCache};
use crate::keys;
use crate::slots::Place;
use crate::{Error, Options};

/// From this many slots on, reading a hole is not worth a look at its heads first.
const HOLE_SLOTS_MAX: u64 = 64;

/// The first packets of a part lie in one of its first slots.
const SLOTS_OF_FIRST: usize = 4;

/// While the newest stripe is looked for, the ends of so many of the newest segments' files are
/// read ahead, so many bytes of each: every question begins there.
const FILES_AHEAD: usize = 32;
const ENDS_AHEAD: u64 = 256 << 10;

/// A recorder whose last sign of life is not farther away than this may be about to open the rest.
const JUST: Duration = Duration::from_secs(2);
/// So long it has for that until it answers.
const BEGINNING: Duration = Duration::from_secs(1);

/// A run of stripes whose sessions are looked for together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) first: StripeId,
    pub(crate) last: StripeId,
    /// No packet is earlier, as far as heads and directory say.
    pub(crate) time_min: Timestamp,
    /// The segment that covers it; `None` where no index does.
    pub(crate) segment: Option<SegmentEntry>,
}

impl Part {
    /// No packet is later, as far as the directory says.
    pub(crate) fn time_max(&self) -> Timestamp {
        self.segment.map_or(Timestamp::MAX, |entry| entry.summary.time_max)
    }
}

/// A volume opened for reading.
pub(crate) struct Archive {
    pub(crate) reader: Reader,
    pub(crate) catalog: Catalog,
    pub(crate) cache: Box<dyn Files>,
    pub(crate) vlan_in_key: bool,
    /// Who starts the indexer for what has no index.
    pub(crate) workers: Workers,
    /// When it was opened.
    pub(crate) now: Timestamp,
    /// Nothing at or before this time is given out.
    pub(crate) expired: Timestamp,
    /// Memory for the order of time.
    pub(crate) merge: MergeMemory,
    /// A recorder runs.
    is_recorded: bool,
    /// Of segments the one before, if no stripe with packets lies between the two.
    behind: BTreeMap<StripeId, StripeId>,
    /// Where it is opened again to see how far its recorder is; `None` where none can be.
    path: Option<PathBuf>,
    members: Vec<PathBuf>,
}

/// The recorder did not stop in order, and a moment ago it was alive: a recorder that was killed
/// leaves the same as one that has begun since it was asked for.
fn is_just_begun(reader: &Reader, now: Timestamp) -> bool {
    let alive = reader.last_alive().filter(|_| !reader.has_stopped_in_order());
    alive.is_some_and(|at| u128::from(at.0.abs_diff(now.0)) <= JUST.as_nanos())
}

impl Archive {
    /// Opens the volume and learns of its segments: from the newest INDEX back, then from the
    /// cache.
    pub(crate) fn open(options: &Options, now: Timestamp) -> Result<Self, Error> {
        let mut reader = volume::open_superblocks(&options.volume, &options.members)?;
        let cache = cache::open(options, reader.superblock().volume_id, now);
        thread::scope(|scope| {
            let ahead = thread::Builder::new().name("ahead".to_owned());
            let read_ahead = || cache.read_ahead(FILES_AHEAD, ENDS_AHEAD);
            ahead.spawn_scoped(scope, read_ahead).map_err(Error::Thread)?;
            Ok::<(), Error>(reader.find_newest()?)
        })?;
        keys::unlock(&mut reader, options)?;
        let has_begun = !options.is_recorded
            && is_just_begun(&reader, now)
            && options.recorder.has_begun(BEGINNING);
        if has_begun {
            reader = volume::open_reader(&options.volume, &options.members)?;
            keys::unlock(&mut reader, options)?;
        }
        let mut archive = Self::of_reader(reader, options, now);
        archive.is_recorded |= has_begun;
        archive.path = Some(options.volume.clone());
        archive.cache = archive.index_keys().over(cache, &[]);
        archive.load_directories();
        let Self { reader, catalog, cache, .. } = &mut archive;
        let ring = |lasts: &[StripeId]| lasts.iter().map(|&last| identity(reader, last)).collect();
        if catalog.add_files(cache.as_ref(), &ring).is_err() {
            archive.cache = Box::new(NoCache);
        }
        Ok(archive)
    }

    /// Opens the volume and nothing else.
    pub(crate) fn without_index(options: &Options, now: Timestamp) -> Result<Self, Error> {
        let mut reader = volume::open_reader(&options.volume, &options.members)?;
        keys::unlock(&mut reader, options)?;
        let mut archive = Self::of_reader(reader, options, now);
        archive.path = Some(options.volume.clone());
        Ok(archive)
    }

    /// The same of a reader that is open, with the segments that its directories name.
    pub(crate) fn of_volume(reader: Reader, options: &Options, now: Timestamp) -> Self {
        let mut archive = Self::of_reader(reader, options, now);
        archive.path = Some(options.volume.clone());
        archive.load_directories();
        archive
    }

    /// A volume without a running recorder.
    pub(crate) fn of_reader(reader: Reader, options: &Options, now: Timestamp) -> Self {
        let volume = reader.superblock().volume_id;
        let tail = reader.span().map_or(Sequence(0), |span| span.tail);
        Self {
            catalog: Catalog::new(volume, tail, options.keep_sessions),
            cache: Box::new(NoCache),
            vlan_in_key: options.vlan_in_key,
            workers: options.workers.clone(),
            now,
            expired: reader.superblock().expired_at(now),
            merge: options.merge,
            is_recorded: options.is_recorded,
            behind: BTreeMap::new(),
            path: None,
            members: options.members.clone(),
            reader,
        }
    }

    /// What its index is opened with.
    fn index_keys(&self) -> IndexKeys {
        IndexKeys::new(self.reader.keyring().cloned())
    }

    /// Up to when packets were erased, if any were that such a range of time asks for.
    pub(crate) fn erased_through(&self, times: &RangeInclusive<Timestamp>) -> Option<Timestamp> {
        let superblock = self.reader.superblock();
        let is_erased = superblock.given_up_before > superblock.geometry.first_sequence();
        let through = is_erased.then_some(superblock.expired_through);
        through.filter(|through| times.start() <= through)
    }

    /// What heads say of such a range of time; nothing where a volume is salvaged, whose heads may
    /// be of any process.
    pub(crate) fn standing(&self, times: &RangeInclusive<Timestamp>) -> Standing {
        if self.path.is_none() {
            return Standing::default();
        }
        let (times, now, is_recorded) = (times.clone(), self.now, self.is_recorded);
        standing(&self.reader, &Asking { times, now, is_recorded })
    }

    pub(crate) fn volume(&self) -> VolumeId {
        self.reader.superblock().volume_id
    }

    /// The slots that are held, oldest first.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = Sequence> + use<> {
        let span = self.span();
        span.into_iter().flat_map(|span| (span.tail..=span.acknowledged.sequence).each())
    }

    /// The same with all columns that hold packets.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + use<'_> {
        self.sequences().map(|sequence| self.place(sequence))
    }

    /// A slot with all columns that hold packets.
    pub(crate) fn place(&self, sequence: Sequence) -> Place {
        let geometry = self.reader.membership().geometry_at(sequence);
        Place { sequence, columns: (1 << geometry.data_columns) - 1 }
    }

    fn load_directories(&mut self) {
        let mut at = self.reader.newest_index();
        let newest = self.span().map_or(StripeId::default(), |span| span.acknowledged);
        while let Some(index) = at {
            at = match self.reader.directory(index) {
                // A segment that ends behind everything is none.
                Some(entries) if entries.iter().any(|entry| entry.summary.last > newest) => None,
                Some(entries) if self.catalog.add(&entries) => {
                    self.catalog.older_directory().filter(|_| self.may_hold_older_packets())
                }
                Some(_) => None,
                None => self.index_before(index),
            };
        }
    }

    /// Whether packets may lie in front of the oldest segment known.
    fn may_hold_older_packets(&self) -> bool {
        let tail = StripeId { sequence: self.tail(), sub: 0 };
        let oldest = self.catalog.select(&(Timestamp::MIN..=Timestamp::MAX)).into_iter().next();
        oldest.is_some_and(|entry| {
            let between = [(tail, entry.summary.first.before())];
            let heads = self.first_heads(slots_of_short(&between));
            self.holes(&between, &heads).pop().flatten().is_some()
        })
    }

    /// The INDEX before the one at `at`, by the head of `at` or of a stripe shortly before it.
    fn index_before(&self, at: StripeId) -> Option<StripeId> {
        let tail = self.span()?.tail;
        let mut buffer = vec![0; self.reader.piece_bytes()];
        let near = (tail..=at.sequence).each().rev().take(4);
        near.filter_map(|sequence| self.reader.slot(sequence, 0, &mut buffer).ok())
            .flat_map(|slot| slot.stripes.into_iter().rev())
            .map(|stripe| stripe.head.stripe)
            .find(|head| head.stripe <= at && head.index < at)
            .map(|head| head.index)
            .filter(|index| index.sequence >= tail)
    }

    pub(crate) fn span(&self) -> Option<Span> {
        self.reader.span()
    }

    /// Oldest sequence that is held.
    pub(crate) fn tail(&self) -> Sequence {
        self.span().map_or(Sequence::MAX, |span| span.tail)
    }

    /// Whether the ring has passed `sequence` since the volume was opened: then what looks like
    /// damage is none.
    pub(crate) fn has_passed(&self, sequence: Sequence) -> bool {
        let path = self.path.as_deref();
        let now = path.and_then(|path| volume::open_reader(path, &self.members).ok());
        let tail = now.and_then(|reader| reader.span()).map(|span| span.tail);
        tail.is_some_and(|tail| sequence < tail)
    }

    /// Everything that may have sessions, in ring order: segments, and the stripes between them
    /// that hold packets. Files of the cache count from here on, as far as they are of the stripes
    /// that the ring has.
    pub(crate) fn parts(&mut self) -> Vec<Part> {
        let segments = self.catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
        let Self { reader, catalog, .. } = self;
        let ring = |lasts: &[StripeId]| lasts.iter().map(|&last| identity(reader, last)).collect();
        let known = catalog.confirm_groups(&ring);
        let mut next = StripeId { sequence: self.tail(), sub: 0 };
        let mut between: Vec<(StripeId, StripeId)> = Vec::new();
        for entry in &segments {
            let first = entry.summary.first;
            // Nothing is looked for where a group knows that nothing is.
            between.push((
                next,
                if known.contains(&first) { StripeId::default() } else { first.before() },
            ));
            next = next.max(entry.summary.last.after());
        }
        between.extend(self.span().map(|span| (next, span.acknowledged)));
        let open = segments.iter().filter(|entry| !self.catalog.is_confirmed(entry.summary.first));
        let lasts = open.map(|entry| entry.summary.last.sequence);
        let held = lasts.filter(|&last| last >= self.tail());
        // Nearly all of them are slots of holes as well.
        let heads = self.first_heads(slots_of_short(&between).into_iter().chain(held).collect());
        let mut holes = self.holes(&between, &heads).into_iter();
        for summary in segments.iter().map(|entry| &entry.summary) {
            if self.catalog.is_confirmed(summary.first) {
                continue;
            }
            if let Some(head) = heads.get(&summary.last.sequence) {
                let identity = Identity::new(summary.last, &head.cid);
                self.catalog.confirm(summary.first, Some(identity), self.cache.as_ref());
            }
        }
        let mut parts: Vec<Part> = Vec::new();
        for entry in segments {
            parts.extend(holes.next().flatten());
            let summary = entry.summary;
            if let Some(before) = parts.last().and_then(|part| part.segment) {
                self.behind.insert(summary.first, before.summary.first);
            }
            let (first, last, time_min) = (summary.first, summary.last, summary.time_min);
            parts.push(Part { first, last, time_min, segment: Some(entry) });
        }
        parts.extend(holes.flatten());
        parts
    }

    /// The first heads of these slots that can be read, read at the same time.
    fn first_heads(&self, slots: BTreeSet<Sequence>) -> BTreeMap<Sequence, Head> {
        let slots = Vec::from_iter(slots);
        let heads = slots.iter().copied().zip(self.reader.first_heads(&slots));
        heads.filter_map(|(slot, head)| Some((slot, head?))).collect()
    }

    /// For each pair of stripes the part from the first to the last, if any of them may hold
    /// packets, by the first heads of the slots in short ones.
    fn holes(
        &self,
        between: &[(StripeId, StripeId)],
        heads: &BTreeMap<Sequence, Head>,
    ) -> Vec<Option<Part>> {
        between.iter().map(|&(first, last)| self.hole(first, last, heads)).collect()
    }

    /// One of [`Self::holes`], by the first heads of its slots.
    fn hole(
        &self,
        first: StripeId,
        last: StripeId,
        heads: &BTreeMap<Sequence, Head>,
    ) -> Option<Part> {
        if first > last {
            return None;
        }
        let sequences = first.sequence..=last.sequence;
        let begin = if is_short(first, last) {
            let stripes = first..=last;
            sequences.each().find(|&sequence| match heads.get(&sequence) {
                Some(head) if self.fills_slot(head) => holds_packets(head, &stripes),
                _ => self.may_hold_packets(sequence, stripes.clone()),
            })?
        } else {
            first.sequence
        };
        let slots = begin..=last.sequence;
        let time_min = if is_short(first, last) {
            // Behind the first stripe of a slot its recording went on.
            let first = heads.get(&begin).and_then(not_before);
            let found = slots.each().filter_map(|slot| heads.get(&slot)).filter(|it| is_data(it));
            let rest = found.map(|head| head.stripe.time_min).min();
            first.map(|first| rest.map_or(first, |it| it.min(first)))
        } else {
            self.earliest_of_stretch(&slots)
        };
        let first = first.max(StripeId { sequence: begin, sub: 0 });
        let time_min = time_min.unwrap_or(Timestamp::MIN);
        Some(Part { first, last, time_min, segment: None })
    }

    /// The earliest packet of many slots, if they are of one stretch of recording.
    fn earliest_of_stretch(&self, slots: &RangeInclusive<Sequence>) -> Option<Timestamp> {
        let first = self.reader.head(*slots.start()).filter(is_data)?.stripe;
        let (begin, end) = (first.recorded?, self.reader.head(*slots.end())?.stripe.recorded?);
        let is_one = begin.start == end.start;
        let later = if begin.is_live { begin.through } else { end.from };
        is_one.then(|| first.time_min.min(later))
    }

    /// No other stripe follows in the head's slot.
    pub(crate) fn fills_slot(&self, head: &Head) -> bool {
        let stripe = &head.stripe;
        let end = stripe.first_row + 1 + stripe.rows;
        stripe.kind.closes_slot() || end == self.reader.geometry().rows_per_slot()
    }

    /// False where the stripes of the slot that lie within `stripes` are all of other kinds.
    pub(crate) fn may_hold_packets(
        &self,
        sequence: Sequence,
        stripes: RangeInclusive<StripeId>,
    ) -> bool {
        let heads = self.reader.heads(sequence);
        heads.is_none_or(|heads| heads.iter().any(|head| holds_packets(head, &stripes)))
    }

    /// Makes filters over groups of segments where enough have none, for the next question; that
    /// it cannot be done makes no answer wrong.
    pub(crate) fn make_groups(&mut self) {
        drop(self.catalog.make_groups(self.cache.as_ref(), &self.behind));
    }

    /// The segments from which sessions may go on in a part without an index, as far as they can be
    /// read.
    pub(crate) fn before(&mut self, part: &Part) -> Option<SegmentsBefore> {
        let slots = part.first.sequence.max(self.tail())..=part.last.sequence;
        let mut heads =
            slots.each().take(SLOTS_OF_FIRST).flat_map(|slot| self.reader.leading_heads(slot));
        let first = heads.find(|head| head.stripe.stripe >= part.first && is_data(head))?;
        let (epoch, at) = (first.stripe.epoch, first.stripe.time_min);
        drop(heads);
        let mut known = self.catalog.select(&(Timestamp::MIN..=Timestamp::MAX));
        known.reverse();
        let entries = SegmentsBefore::among(&known, part.first, at);
        let segments = entries.iter().filter_map(|entry| self.segment(entry).ok()?);
        let files = segments.filter_map(|segment| segment.file().map(Vec::from).ok()).collect();
        Some(SegmentsBefore { epoch, at, files })
    }

    /// The index of a segment, from the cache or the ring; `None` where it is whole in neither.
    pub(crate) fn segment(&mut self, entry: &SegmentEntry) -> Result<Option<Segment>, Error> {
        match self.catalog.look_up(entry, self.cache.as_ref(), &Needed::default()) {
            LookUp::Found(segment) => Ok(Some(*segment)),
            LookUp::RuledOut(_) | LookUp::Absent => self.reload(entry),
        }
    }

    /// The segment's index from its INDEX stripes, for a cache that does not have it whole; `None`
    /// where they are not whole either.
    pub(crate) fn reload(&mut self, entry: &SegmentEntry) -> Result<Option<Segment>, Error> {
        let (reader, keys) = (&self.reader, self.index_keys());
        let tail = reader.span().map_or(Sequence::MAX, |span| span.tail);
        let mut load = |entry: &SegmentEntry| {
            let held = entry.index.sequence >= tail;
            let file = held.then(|| reader.index(entry.index).ok())??;
            keys.open(file.parquet)
        };
        match self.catalog.reload(entry, self.cache.as_ref(), &mut load) {
            Ok(segment) => Ok(segment),
            // The file of another segment in this one's place is as good as none.
            // And so is what cannot be read as one: its rows are in its packets.
            Err(error @ index::Error::Files { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

/// What the ring says of a segment that ends with the stripe `last`; `None` where it has none with
/// packets there.
fn identity(reader: &Reader, last: StripeId) -> Option<Identity> {
    let span = reader.span().filter(|span| last <= span.acknowledged)?;
    let heads =
        if last.sequence < span.tail { Vec::new() } else { reader.leading_heads(last.sequence) };
    let is_held = |head: &Head| head.stripe.stripe == last && is_data(head);
    let first = heads.first().filter(|_| heads.iter().any(is_held))?;
    Some(Identity::new(last, &first.cid))
}

/// The slots of those pairs of stripes between which there are few.
fn slots_of_short(between: &[(StripeId, StripeId)]) -> BTreeSet<Sequence> {
    let short = between.iter().filter(|(first, last)| is_short(*first, *last));
    short.flat_map(|(first, last)| (first.sequence..=last.sequence).each()).collect()
}

/// Few enough slots to look at their heads.
fn is_short(first: StripeId, last: StripeId) -> bool {
    first <= last && last.sequence - first.sequence < HOLE_SLOTS_MAX
}

/// No packet of this stripe, or of those behind it of the same recording, is earlier.
fn not_before(head: &Head) -> Option<Timestamp> {
    if is_data(head) {
        return Some(head.stripe.time_min);
    }
    let live = head.stripe.recorded.as_ref().filter(|recorded| recorded.is_live);
    live.map(|recorded| recorded.through)
}

/// The stripe holds packets.
pub(crate) fn is_data(head: &Head) -> bool {
    head.stripe.kind == Kind::Data
}

fn holds_packets(head: &Head, stripes: &RangeInclusive<StripeId>) -> bool {
    let says_something = is_data(head) || head.stripe.forgotten().is_some();
    says_something && stripes.contains(&head.stripe.stripe)
}
