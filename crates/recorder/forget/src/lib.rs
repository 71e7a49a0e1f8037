//! Forgetting on request: the packets of the sessions that match a query are taken off a volume.
//!
//! [`plan`] finds the slots that hold such packets, and the indexes that name them, and counts what
//! else is lost with them: a slot goes whole, because a stripe cannot be changed without its
//! parity, its heads and, where it is encrypted, a second use of its nonces. [`Plan::carry_out`]
//! overwrites them on every member. Sessions that were in the same segments are indexed anew from
//! their packets by each query that needs them.
//!
//! Rows may outlive their packets in files of the index directory. A file that has such a row of
//! somebody's goes whole, for the ids of sessions are made of the numbers of rows: what else is
//! lost with it is counted, and a file of another name says so to later answers.
//!
//! Not here: writing (`writer`), opening (`upkeep`), the receipt (`evidence`).

use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use completeness::{Completeness, Damage};
use extract::{KeptRows, Options, RowEvent, Sought, Times, find_rows};
use format::directory::SegmentEntry;
use format::head::{Head, Kind, StripeId, VolumeId};
use query::Query;
use units::{Clock, EachSequence, Sequence, Sleep, Timestamp};
use upkeep::{IndexFiles, Target};
use volume::{Reader, Slot, Span};
use writer::Forgotten;

/// Slots that are looked through for the parts of an index.
const BETWEEN_PARTS: u64 = 4096;

/// Why nothing could be planned or forgotten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Looking for the sessions.
    #[error(transparent)]
    Extract(#[from] extract::Error),
    /// Reading the volume.
    #[error(transparent)]
    Volume(#[from] volume::Error),
    /// Overwriting.
    #[error(transparent)]
    Upkeep(#[from] upkeep::Error),
    /// A head of a slot that is to be overwritten cannot be read.
    #[error("slot {0} cannot be read: scrub the volume first, or give up the slot by its age")]
    Unreadable(Sequence),
}

/// What is to be forgotten, and what goes with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Id of the volume.
    pub volume: VolumeId,
    /// Session rows that match.
    pub rows: u64,
    /// Of those the ones whose packets the ring has overwritten.
    pub kept_rows: u64,
    /// Other rows of overwritten packets that are lost with them.
    pub other_kept_rows: u64,
    /// Packets of those, as far as their index counts them.
    pub packets: u64,
    /// Other packets in the same slots.
    pub other_packets: u64,
    /// Slots with packets that match.
    pub packet_slots: u64,
    /// Slots with an index that names them.
    pub index_slots: u64,
    /// Slots that an earlier call had begun to overwrite and was broken off.
    pub begun_slots: u64,
    /// Bytes of all of these on all members.
    pub bytes: u64,
    /// Hull of the times of all packets that go.
    pub times: Option<(Timestamp, Timestamp)>,
    /// What the look for them lacked.
    pub completeness: Completeness,
    /// The index directory that was looked at; a recorder may have been given another one.
    pub index_dir: PathBuf,
    slots: Vec<Forgotten>,
    /// Times of the rows whose packets are overwritten.
    kept_times: Times,
    /// Files of the index directory that have nothing of what matches.
    staying: BTreeSet<String>,
}

/// The rows that match, and where their packets are.
#[derive(Default)]
struct Found {
    rows: u64,
    kept_rows: u64,
    packets: u64,
    /// Slots that hold packets of them.
    held: BTreeSet<Sequence>,
    /// Segments that have a row of them.
    segments: BTreeSet<StripeId>,
}

/// Finds what a query means, and what would be lost with it. Writes nothing.
///
/// # Errors
/// When the volume cannot be read, or some of its slots not judged.
pub fn plan(
    options: &Options,
    query: &Query,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Plan, Error> {
    let reader = volume::open_reader(&options.volume, &options.members)?;
    let volume = reader.superblock().volume_id;
    let options = &with_kept_rows(options, volume)?;
    let tail = reader.span().map_or(Sequence::MAX, |span| span.tail);
    let (Found { rows, kept_rows, packets, mut held, mut segments }, completeness) =
        search(options, query, (tail, clock), progress)?;
    let mut plan = Plan {
        volume,
        rows,
        kept_rows,
        other_kept_rows: 0,
        packets,
        other_packets: 0,
        packet_slots: 0,
        index_slots: 0,
        begun_slots: 0,
        bytes: 0,
        times: None,
        completeness,
        index_dir: options.index_dir.clone().unwrap_or_default(),
        slots: Vec::new(),
        kept_times: Times::NONE,
        staying: BTreeSet::new(),
    };
    let Some(span) = reader.span() else { return Ok(plan) };
    held.retain(|sequence| (span.tail..=span.acknowledged.sequence).contains(sequence));
    let mut indexes = index_slots(&reader, &held, &mut segments);
    indexes.retain(|sequence| !held.contains(sequence));
    plan.packet_slots = units::number::to_u64(held.len());
    plan.index_slots = units::number::to_u64(indexes.len());
    held.append(&mut indexes);
    let mut begun = begun_slots(&reader, span);
    let is_begun = |damage: &Damage| begun.contains(&damage.stripe.sequence);
    plan.completeness.damage.retain(|damage| !is_begun(damage));
    begun.retain(|sequence| !held.contains(sequence));
    plan.begun_slots = units::number::to_u64(begun.len());
    held.append(&mut begun);
    for sequence in held {
        plan.add(&reader, sequence)?;
    }
    plan.other_packets = plan.other_packets.saturating_sub(packets);
    plan.add_kept(options, &segments, clock)?;
    Ok(plan)
}

/// Rows that outlive their packets are looked for as well, however old. The cache of a volume is
/// named as a folder: to read from it makes it none that keeps such rows.
fn with_kept_rows(options: &Options, volume: VolumeId) -> Result<Options, Error> {
    let folder = host::index_folder(options.index_dir.as_deref(), &volume.to_string());
    let index_dir = Some(folder.map_err(upkeep::Error::from)?);
    Ok(Options { index_dir, keep_sessions: Some(Duration::MAX), ..options.clone() })
}

/// Looks for the rows that match.
fn search(
    options: &Options,
    query: &Query,
    (tail, clock): (Sequence, &dyn Clock),
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Found, Completeness), Error> {
    let mut found = Found::default();
    let report = find_rows(options, &Sought::new(query), clock, &mut |event| match event {
        RowEvent::Row(row, segment) => {
            found.rows += 1;
            found.segments.insert(segment);
            found.held.extend(row.pieces.iter().map(|span| span.piece.sequence));
            if extract::is_held(row, tail) {
                let packets = row.orig.packets.saturating_add(row.resp.packets);
                found.packets = found.packets.saturating_add(packets);
            } else {
                found.kept_rows += 1;
            }
            ControlFlow::Continue(())
        }
        RowEvent::Searched { parts, of } => progress(parts, of),
    })?;
    Ok((found, report.completeness))
}

impl Plan {
    /// Counts what a slot holds.
    fn add(&mut self, reader: &Reader, sequence: Sequence) -> Result<(), Error> {
        let heads = reader.heads(sequence);
        let is_begun = heads.is_none();
        // What was begun has its first head, and zeros behind it.
        let heads = heads.unwrap_or_else(|| reader.leading_heads(sequence));
        let is_data =
            |head: &&Head| head.stripe.kind == Kind::Data && head.stripe.totals.packets > 0;
        let stripes = || heads.iter().filter(is_data).map(|head| &head.stripe);
        self.other_packets += stripes().map(|stripe| stripe.totals.packets).sum::<u64>();
        let sealed = heads.iter().map(|head| head.stripe.realtime).min();
        let sealed = sealed.ok_or(Error::Unreadable(sequence))?;
        let times = stripes().map(|stripe| (stripe.time_min, stripe.time_max));
        let mut times = times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        if let Some(next) = reader.head(sequence.next()).filter(|_| is_begun) {
            times = times.map(|(from, to)| (from, to.max(next.stripe.realtime)));
        }
        if let Some((from, to)) = times {
            let (first, last) = self.times.unwrap_or((from, to));
            self.times = Some((first.min(from), last.max(to)));
        }
        let geometry = reader.membership().geometry_at(sequence);
        self.bytes += u64::from(geometry.piece_bytes) * u64::from(geometry.columns());
        let index = heads.first().map(|head| head.stripe.index).unwrap_or_default();
        // A slot of an index alone has no packets to speak of: nothing is said of it.
        let times = times.unwrap_or((sealed, sealed.plus_nanos(-1)));
        self.slots.push(Forgotten { sequence, times, index });
        Ok(())
    }

    /// Counts the rows of overwritten packets that go with these segments, and names the files of
    /// the index directory that stay.
    fn add_kept(
        &mut self,
        options: &Options,
        segments: &BTreeSet<StripeId>,
        clock: &dyn Clock,
    ) -> Result<(), Error> {
        let KeptRows { rows, times } = extract::kept_rows(options, segments, clock)?;
        self.other_kept_rows = rows.saturating_sub(self.kept_rows);
        self.kept_times = times;
        let files = extract::index_files(options, clock)?;
        let mut of_segment: BTreeMap<StripeId, Vec<String>> = BTreeMap::new();
        for (name, first) in files {
            of_segment.entry(first).or_default().push(name);
        }
        for (first, names) in of_segment {
            // Of two files one was not looked at.
            if let ([name], false) = (&*names, segments.contains(&first)) {
                self.staying.insert(name.clone());
            }
        }
        Ok(())
    }

    /// Whether nothing matches, and nothing was begun.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.kept_rows == 0
    }

    /// How many slots go.
    pub fn slots(&self) -> u64 {
        units::number::to_u64(self.slots.len())
    }

    /// Sequences of all slots that go.
    pub fn sequences(&self) -> Vec<Sequence> {
        self.slots.iter().map(|slot| slot.sequence).collect()
    }

    /// Removes the files, then overwrites the slots on every member; who breaks it off finds what
    /// is left again. Also of an empty plan, for what no query can find goes then.
    ///
    /// # Errors
    /// As [`upkeep::forget`].
    pub fn carry_out(
        &self,
        target: &Target,
        index_dir: Option<&Path>,
        clock: &dyn Sleep,
    ) -> Result<(), Error> {
        let stays = |name: &str| self.staying.contains(name) || extract::is_of_forgotten(name);
        let made = extract::names_of_forgotten(&self.kept_times);
        let index = IndexFiles { folder: index_dir, stays: &stays, made: &made };
        Ok(upkeep::forget(target, &self.slots, &index, clock)?)
    }
}

/// Slots that an earlier call was overwriting when it was broken off: of those that it may have
/// begun the ones that cannot be read. It begins only where everything can.
fn begun_slots(reader: &Reader, span: Span) -> BTreeSet<Sequence> {
    let Some((first, last)) = reader.superblock().forgetting else { return BTreeSet::new() };
    let range = first.max(span.tail)..=last.min(span.acknowledged.sequence);
    let mut memory = Vec::new();
    let mut is_begun = |sequence: &Sequence| {
        let columns: Vec<u8> =
            (0..reader.membership().geometry_at(*sequence).data_columns).collect();
        memory.resize_with(columns.len(), Vec::new);
        let is_whole = |slot: &Slot| {
            slot.missing(*sequence, span.acknowledged).is_empty()
                && slot.stripes.iter().all(|stripe| stripe.bad_rows.is_empty())
        };
        let is_bad = |slot: Result<Slot, _>| !slot.is_ok_and(|slot| is_whole(&slot));
        reader.sealed_slots(*sequence, &columns, &mut memory).into_iter().any(is_bad)
    };
    range.each().filter(|sequence| is_begun(sequence)).collect()
}

/// Slots with the indexes of these segments, and of those that have rows of packets in these slots:
/// their own, and the one behind it, whose rows may name pieces of the segment before. Those are
/// added to the segments.
fn index_slots(
    reader: &Reader,
    held: &BTreeSet<Sequence>,
    segments: &mut BTreeSet<StripeId>,
) -> BTreeSet<Sequence> {
    let entries = upkeep::segments_of(reader);
    let by_first: BTreeMap<StripeId, &SegmentEntry> =
        entries.iter().map(|entry| (entry.summary.first, entry)).collect();
    let mut found = BTreeSet::new();
    let mut is_behind = false;
    for entry in by_first.into_values() {
        let (first, last) = (entry.summary.first.sequence, entry.summary.last.sequence);
        let has_some = held.range(first..=last).next().is_some();
        if has_some || is_behind || segments.contains(&entry.summary.first) {
            segments.insert(entry.summary.first);
            found.extend(parts_of(reader, entry));
        }
        is_behind = has_some;
    }
    found
}

/// Slots with the parts of an index; data may lie between them.
fn parts_of(reader: &Reader, entry: &SegmentEntry) -> BTreeSet<Sequence> {
    let newest = reader.span().map_or(Sequence(0), |span| span.acknowledged.sequence);
    let end = newest.min(entry.index.sequence.saturating_add(BETWEEN_PARTS));
    let (mut found, mut left) = (BTreeSet::new(), usize::from(entry.parts));
    for sequence in (entry.index.sequence..=end).each() {
        if left == 0 {
            break;
        }
        let heads = reader.heads(sequence).unwrap_or_default();
        let parts = heads
            .iter()
            .filter(|head| head.stripe.kind == Kind::Index && head.stripe.stripe >= entry.index);
        let columns = reader.membership().geometry_at(sequence).data_columns;
        let count = parts.count() * usize::from(columns);
        if count > 0 {
            found.insert(sequence);
        }
        left = left.saturating_sub(count);
    }
    found
}
