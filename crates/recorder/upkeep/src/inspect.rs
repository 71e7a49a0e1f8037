//! What a volume holds, by its superblock, a few heads and the directories of its index.
//!
//! Cost: one head for every halving of an epoch's stretch, and one segment's index, or the first
//! rows of a piece, for the name of each recording; the packets are not read.

use core::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use format::directory::SegmentEntry;
use format::head::{Head, Kind, StripeId};
use format::piece::interfaces_in_front;
use format::superblock::Superblock;
use index::{LeftOut, Segment};
use units::Timestamp;
use units::number::real;
use volume::{Reader, RowsWanted, Span};

use crate::Error;
use crate::segments::{self, Segments};

/// Heads that are tried when some cannot be read or hold no packets.
const NEIGHBOURS: u64 = 64;

/// Fewer slots say nothing about a rate.
const SLOTS_FOR_RATE: u64 = 8;

/// What a member is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// Holds every piece that it should.
    Whole,
    /// Missed the stripes from one sequence up to another one, or up to now.
    Stale {
        /// First sequence missed.
        from: u64,
        /// First sequence that is whole again; `u64::MAX` when none is yet.
        to: u64,
    },
    /// Not found.
    Absent,
    /// Its seat is empty: made without it, or it was called gone for good.
    Vacant,
}

/// A volume as it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Inspection {
    /// The member that was named.
    pub path: PathBuf,
    /// What each member is good for, by number.
    pub members: Vec<MemberState>,
    /// Of absent members: why what lies in their place is not they, where there is anything.
    pub why_absent: Vec<(u8, String)>,
    /// Bytes of the smallest member at hand.
    pub smallest_member_bytes: u64,
    /// Identity, shape, members and epochs.
    pub superblock: Superblock,
    /// What may be read; `None` while nothing is acknowledged.
    pub span: Option<Span>,
    /// The newest sequence on the ring.
    pub newest: Option<u64>,
    /// The last writer stopped in order; not so while one is writing.
    pub clean_stop: bool,
    /// Slots that hold something.
    pub slots_used: u64,
    /// Slots written in the volume's life.
    pub slots_written: u64,
    /// Earliest and latest packet.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Openings of the volume that the ring still holds packets of, oldest first.
    pub recordings: Vec<Recording>,
    /// Session index of the volume.
    pub index: IndexSummary,
    /// How far back the ring reaches.
    pub reach: Option<Reach>,
    /// Of an encrypted volume: who can read it, and how many data keys it has.
    pub encryption: Option<Encryption>,
}

/// To whom a volume is encrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encryption {
    /// Texts of their public keys.
    pub recipients: Vec<String>,
    /// Data keys that lie on the members.
    pub keys: usize,
}

fn encryption(reader: &Reader) -> Option<Encryption> {
    reader.superblock().is_encrypted.then(|| {
        let log = reader.key_log();
        Encryption { recipients: log.recipients(), keys: log.keys().count() }
    })
}

/// What one opening of the volume for recording left in the ring.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// As given with `record --name`.
    pub name: Option<String>,
    /// Epoch of the recording.
    pub epoch: u32,
    /// Oldest sequence left.
    pub first: u64,
    /// Newest sequence.
    pub last: u64,
    /// Earliest and latest packet left.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Packets and session rows, as far as they are indexed.
    pub indexed: Option<(u64, u64)>,
    /// Share that the ring has not taken; `None` when it took an unknown part.
    pub share_left: Option<f64>,
}

/// The index as the ring's directories describe it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexSummary {
    /// Number of segments.
    pub segments: u64,
    /// Number of session rows.
    pub sessions: u64,
    /// Packets of the segments.
    pub packets: u64,
    /// Bytes of the Parquet files.
    pub bytes: u64,
    /// Segments with packets that are in no row.
    pub segments_unindexed: u64,
    /// Stripes that shall have no rows, because they ended the indexer twice, of the newest
    /// [`LEFT_OUT_SEGMENTS_MAX`] segments with packets that are in no row.
    pub left_out: Vec<LeftOut>,
    /// Segments with gaps.
    pub segments_with_gaps: u64,
    /// The INDEX stripe where the directories cannot be read on.
    pub broken_at: Option<StripeId>,
}

/// So many segments at most are read for what was left out of them.
pub const LEFT_OUT_SEGMENTS_MAX: usize = 64;

/// How far back the ring reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// From the earliest to the latest packet held, in nanoseconds.
    pub held_ns: i64,
    /// What a full ring holds at the rate of the newest recording.
    pub full_ns: i64,
}

/// Looks at a volume; writes nothing, takes no lock.
pub fn inspect(path: &Path, members: &[PathBuf]) -> Result<Inspection, Error> {
    let reader = crate::open(path, members)?;
    let superblock = reader.superblock().clone();
    let slots = superblock.geometry.slots;
    let newest = reader.newest().map(|newest| newest.sequence);
    // Lap 0 is never written: the first sequence is N.
    let slots_written = newest.map_or(0, |newest| (newest + 1).saturating_sub(slots));
    let segments = segments::read(&reader);
    let recordings =
        reader.span().map_or(Vec::new(), |span| recordings(&reader, span, &segments.entries));
    let expired = superblock.expired_through;
    let times = recordings.iter().filter_map(|recording| recording.times).reduce(cover);
    let times = times.map(|(from, to)| (from.max(expired), to.max(expired)));
    Ok(Inspection {
        path: path.to_path_buf(),
        members: reader
            .membership()
            .numbers()
            .map(|member| member_state(&reader, member))
            .collect(),
        why_absent: why_absent(path, &reader),
        smallest_member_bytes: reader.smallest_member_bytes(),
        span: reader.span(),
        newest,
        clean_stop: reader.has_stopped_in_order(),
        slots_used: slots_written.min(slots),
        slots_written,
        times,
        reach: reach(slots, times, &recordings),
        recordings,
        index: summary(&reader, &segments),
        encryption: encryption(&reader),
        superblock,
    })
}

fn why_absent(path: &Path, reader: &Reader) -> Vec<(u8, String)> {
    let absent = reader.membership().absent();
    let reason = |member: u8| {
        let reason = volume::why_absent(path, reader.superblock(), member)?;
        Some((member, reason.to_string()))
    };
    absent.filter_map(reason).collect()
}

/// What a member is good for.
pub(crate) fn member_state(reader: &Reader, member: u8) -> MemberState {
    let membership = reader.membership();
    let gap = membership.gap(member);
    let tail = reader.span().map_or(0, |span| span.tail);
    if membership.is_vacant(member) {
        MemberState::Vacant
    } else if membership.of(member).is_none() {
        MemberState::Absent
    } else if gap.is_empty() || gap.end <= tail {
        MemberState::Whole
    } else {
        MemberState::Stale { from: gap.start.max(tail), to: gap.end }
    }
}

fn cover(a: (Timestamp, Timestamp), b: (Timestamp, Timestamp)) -> (Timestamp, Timestamp) {
    (a.0.min(b.0), a.1.max(b.1))
}

fn summary(reader: &Reader, segments: &Segments) -> IndexSummary {
    let mut summary = IndexSummary::default();
    for entry in &segments.entries {
        summary.segments += 1;
        summary.sessions = summary.sessions.saturating_add(entry.summary.sessions);
        summary.packets = summary.packets.saturating_add(entry.summary.packets);
        summary.bytes = summary.bytes.saturating_add(entry.bytes);
        summary.segments_unindexed += u64::from(entry.summary.unindexed);
        summary.segments_with_gaps += u64::from(entry.summary.gaps);
    }
    summary.broken_at = segments.broken.as_ref().map(|(at, _)| *at);
    summary.left_out = left_out(reader, &segments.entries);
    summary
}

/// Only the files of segments say it; only those with packets without a row are read.
fn left_out(reader: &Reader, entries: &[SegmentEntry]) -> Vec<LeftOut> {
    let lacking = entries.iter().rev().filter(|entry| entry.summary.unindexed);
    let files = lacking.take(LEFT_OUT_SEGMENTS_MAX).filter_map(|entry| segment(reader, entry));
    let mut left_out: Vec<LeftOut> =
        files.flat_map(|segment| segment.meta().left_out.clone()).collect();
    left_out.sort_by_key(|left| left.first);
    left_out
}

fn segment(reader: &Reader, entry: &SegmentEntry) -> Option<Segment> {
    let file = reader.index(entry.index).ok()?;
    Segment::open(Bytes::from(file.parquet)).ok()
}

fn recordings(reader: &Reader, span: Span, entries: &[SegmentEntry]) -> Vec<Recording> {
    let last = span.acknowledged.sequence;
    let mut recordings = Vec::new();
    let mut first = span.tail;
    while let Some(head) = next_head(reader, first, last) {
        let epoch = head.stripe.epoch;
        let end = end_of_epoch(reader, epoch, first, last);
        let recording = recording(reader, epoch, (first, end), entries);
        // An opening that stored nothing is no recording; of a long one not every head was read.
        let is_short = end - first < 2 * NEIGHBOURS;
        if recording.times.is_some() || recording.indexed.is_some() || !is_short {
            recordings.push(recording);
        }
        first = end + 1;
    }
    recordings
}

/// The first readable head from `first` on.
fn next_head(reader: &Reader, first: u64, last: u64) -> Option<Head> {
    (first..=last).take(to_usize(NEIGHBOURS)).find_map(|sequence| reader.head(sequence))
}

/// The last sequence of an epoch that `first` belongs to: epochs only rise along the ring.
fn end_of_epoch(reader: &Reader, epoch: u32, first: u64, last: u64) -> u64 {
    let (mut inside, mut outside) = (first, last + 1);
    while outside - inside > 1 {
        let middle = inside + (outside - inside) / 2;
        match next_head(reader, middle, outside - 1) {
            Some(head) if head.stripe.epoch <= epoch => inside = middle,
            _ => outside = middle,
        }
    }
    inside
}

fn recording(
    reader: &Reader,
    epoch: u32,
    (first, last): (u64, u64),
    entries: &[SegmentEntry],
) -> Recording {
    let of_epoch = |entry: &&SegmentEntry| (first..=last).contains(&entry.summary.last.sequence);
    let own: Vec<&SegmentEntry> = entries.iter().filter(of_epoch).collect();
    let by_index = own.iter().filter(|entry| entry.summary.packets > 0);
    let by_index = by_index.map(|entry| (entry.summary.time_min, entry.summary.time_max));
    let ends = (first..=last)
        .take(to_usize(NEIGHBOURS))
        .chain((first..=last).rev().take(to_usize(NEIGHBOURS)));
    // The newest slot may hold many short stripes, all of them acknowledged but for the last ones.
    let acknowledged = reader.span().map(|span| span.acknowledged);
    let newest = reader.leading_heads(last).into_iter();
    let newest = newest.filter(|head| Some(head.stripe.stripe) <= acknowledged);
    let heads: Vec<Head> =
        ends.filter_map(|sequence| reader.head(sequence)).chain(newest).collect();
    let by_heads = heads.iter().filter_map(|head| {
        let (from, to) = (head.stripe.time_min, head.stripe.time_max);
        (from <= to).then_some((from, to))
    });
    let sum = |count: fn(&SegmentEntry) -> u64| own.iter().map(|entry| count(entry)).sum();
    let indexed = (sum(|entry| entry.summary.packets), sum(|entry| entry.summary.sessions));
    Recording {
        name: name(reader, &own).or_else(|| name_in_pieces(reader, &heads)),
        epoch,
        first,
        last,
        times: by_index.chain(by_heads).reduce(cover),
        indexed: (!own.is_empty()).then_some(indexed),
        share_left: share_left(reader, epoch, first, last),
    }
}

/// Every segment carries the name of its recording; the smallest is read.
fn name(reader: &Reader, own: &[&SegmentEntry]) -> Option<String> {
    let smallest = own.iter().min_by_key(|entry| entry.bytes)?;
    segment(reader, smallest)?.meta().recording.clone()
}

/// The first piece with a packet that can be read says it, where it can be read without a key.
fn name_in_pieces(reader: &Reader, heads: &[Head]) -> Option<String> {
    let stripe = heads.iter().find(|head| head.stripe.kind == Kind::Data)?.stripe.stripe;
    let wanted: Vec<RowsWanted> = (0..reader.geometry().data_columns)
        .map(|column| RowsWanted { stripe, column, rows: Vec::from([Range { start: 0, end: 1 }]) })
        .collect();
    let rows = reader.rows(&wanted).into_iter().flatten();
    let fronts = rows.filter_map(|rows| rows.runs.into_iter().next());
    let mut interfaces = fronts.flat_map(|(_, front)| interfaces_in_front(&front));
    interfaces.find_map(|interface| interface.recording)
}

/// A recording is whole while its EPOCH stripe is there; where the newest one began is also in the
/// superblock. Slots that were erased for somebody belong to the recording behind them, too.
fn share_left(reader: &Reader, epoch: u32, first: u64, last: u64) -> Option<f64> {
    let superblock = reader.superblock();
    let head = reader.head(first);
    if head.is_some_and(|head| head.stripe.kind == Kind::Epoch) {
        return Some(1.0);
    }
    let is_newest = epoch == superblock.joined_epoch && first >= superblock.joined_start;
    let start = is_newest.then_some(superblock.joined_start)?;
    let count = |from: u64| real((last + 1).saturating_sub(from));
    Some(count(first) / count(start).max(1.0))
}

/// What a full ring holds, if traffic goes on as in the newest recording.
fn reach(
    slots: u64,
    times: Option<(Timestamp, Timestamp)>,
    recordings: &[Recording],
) -> Option<Reach> {
    let (from, to) = times?;
    let newest = recordings.last()?;
    let (start, end) = newest.times?;
    let (used, lasted) = (newest.last + 1 - newest.first, end.since(start));
    if lasted <= 0 || used < SLOTS_FOR_RATE {
        return None;
    }
    let full = i128::from(lasted) * i128::from(slots) / i128::from(used);
    let full_ns = i64::try_from(full).unwrap_or(i64::MAX);
    Some(Reach { held_ns: to.since(from), full_ns })
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).expect("a small number")
}
