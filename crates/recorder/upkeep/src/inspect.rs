//! What a volume holds, by its superblock, a few heads and the directories of its index.
//!
//! Cost: one head for every halving of an epoch's stretch, and one segment's index, or the first
//! rows of a piece, for the name of each recording; the packets are not read.

use core::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use format::directory::SegmentEntry;
use format::geometry::Geometry;
use format::head::{Head, Kind, StripeId, VolumeId};
use format::piece::interfaces_in_front;
use format::superblock::Qualified;
use index::{LeftOut, Segment};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use units::number::real;
use units::{EachSequence, Epoch, MemberId, Sequence, Timestamp};
use volume::{Reader, RowsWanted, Span, path_text};

use crate::Error;
use crate::segments::{self, Segments};
use crate::shape::{ShapeForm, shape};

/// Heads that are tried when some cannot be read or hold no packets.
const NEIGHBOURS: u64 = 64;

/// Fewer slots say nothing about a rate.
const SLOTS_FOR_RATE: u64 = 8;

/// What a member is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum MemberState {
    /// Holds every piece that it should.
    Whole,
    /// Missed the stripes from one sequence up to another one, or up to now.
    Stale {
        /// First sequence missed.
        #[serde(rename = "stale_from")]
        from: Sequence,
        /// First sequence that is whole again; the largest number, 2^64 - 1, when none is yet.
        #[serde(rename = "clean_from", skip_serializing_if = "is_never")]
        to: Sequence,
    },
    /// Not found.
    Absent,
    /// Its seat is empty: made without it, or it was called gone for good.
    Vacant,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_never(sequence: &Sequence) -> bool {
    *sequence == Sequence::MAX
}

impl MemberState {
    /// In one word, without the stripes that it lacks.
    pub fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Stale { .. } if self.is_left_out() => "left out",
            Self::Stale { .. } => "stale",
            Self::Absent => "absent",
            Self::Vacant => "vacant",
        }
    }

    /// The state of such a word, where which stripes it lacks does not matter.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        let stale = |to| Self::Stale { from: Sequence(0), to };
        let all =
            [Self::Whole, stale(Sequence(0)), stale(Sequence::MAX), Self::Absent, Self::Vacant];
        all.into_iter().find(|state| state.word() == word)
    }

    /// It takes no part in what is written now.
    pub fn is_left_out(self) -> bool {
        matches!(self, Self::Stale { to: Sequence::MAX, .. })
    }
}

/// A member of a volume as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct InspectedMember {
    /// Where it was when the superblock was written; empty when that was too long.
    pub path: String,
    /// What it is good for.
    #[serde(flatten)]
    pub state: MemberState,
    /// Of an absent one: why what lies in its place is not it, where there is anything.
    #[serde(skip)]
    pub why_absent: Option<String>,
}

/// A volume as it is.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Inspection {
    /// The member that was named.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// When it was made.
    #[serde(rename = "created_ns")]
    pub created: Timestamp,
    /// The members, by number.
    pub members: Vec<InspectedMember>,
    /// Shape of new stripes, and of the ring on each member.
    #[serde(flatten, serialize_with = "shape")]
    #[schemars(with = "ShapeForm")]
    pub geometry: Geometry,
    /// What was measured of each member before it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualified: Option<Qualified>,
    /// Slots of the ring.
    pub slots: u64,
    /// Slots that hold something.
    pub slots_used: u64,
    /// Slots written in the volume's life.
    pub slots_written: u64,
    /// Stripes that may be under way at a time.
    pub window: u16,
    /// Texts of the public keys of those who can read what is recorded; none where all can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Packets older than this are not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ns: Option<i64>,
    /// Packets up to here are given out no more, because of their age.
    #[serde(rename = "expired_through_ns", skip_serializing_if = "Option::is_none")]
    pub expired_through: Option<Timestamp>,
    /// Whether what is older is erased, too.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub erases: bool,
    /// Number of the newest opening.
    pub epoch: Epoch,
    /// The last writer stopped in order; not so while one is writing.
    pub clean_stop: bool,
    /// Oldest sequence that may be read; `None` while nothing is acknowledged.
    #[serde(rename = "tail_sequence", skip_serializing_if = "Option::is_none")]
    pub tail: Option<Sequence>,
    /// The newest sequence on the ring.
    #[serde(rename = "newest_sequence", skip_serializing_if = "Option::is_none")]
    pub newest: Option<Sequence>,
    /// Newest stripe that is durable; `None` while none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<StripeId>,
    /// Earliest and latest packet.
    #[serde(flatten, serialize_with = "bounds")]
    #[schemars(with = "Option<Bounds>")]
    pub times: Option<(Timestamp, Timestamp)>,
    /// What a full ring holds at the rate of the newest recording, in nanoseconds.
    #[serde(rename = "reach_full_ns", skip_serializing_if = "Option::is_none")]
    pub reach_ns: Option<i64>,
    /// Session index of the volume.
    pub index: IndexSummary,
    /// Openings of the volume that the ring still holds packets of, oldest first.
    pub recordings: Vec<Recording>,
    /// Bytes of the smallest member at hand.
    #[serde(skip)]
    pub smallest_member_bytes: u64,
}

/// What one opening of the volume for recording left in the ring.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Recording {
    /// As given with `record --name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Epoch of the recording.
    pub epoch: Epoch,
    /// Oldest sequence left.
    #[serde(rename = "first_sequence")]
    pub first: Sequence,
    /// Newest sequence.
    #[serde(rename = "last_sequence")]
    pub last: Sequence,
    /// Earliest and latest packet left.
    #[serde(flatten, serialize_with = "bounds")]
    #[schemars(with = "Option<Bounds>")]
    pub times: Option<(Timestamp, Timestamp)>,
    /// Packets and session rows, as far as they are indexed.
    #[serde(flatten, serialize_with = "counts")]
    #[schemars(with = "Option<Counts>")]
    pub indexed: Option<(u64, u64)>,
    /// Share that the ring has not taken; `None` when it took an unknown part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_left: Option<f64>,
}

/// How reports say times, where there are any.
#[derive(Serialize, JsonSchema)]
struct Bounds {
    start_ns: Timestamp,
    end_ns: Timestamp,
}

#[expect(clippy::ref_option, reason = "serde gives a reference")]
fn bounds<S: Serializer>(times: &Option<(Timestamp, Timestamp)>, to: S) -> Result<S::Ok, S::Error> {
    times.map(|(start_ns, end_ns)| Bounds { start_ns, end_ns }).serialize(to)
}

/// How reports say counts, where they are known.
#[derive(Serialize, JsonSchema)]
struct Counts {
    packets: u64,
    sessions: u64,
}

#[expect(clippy::ref_option, reason = "serde gives a reference")]
fn counts<S: Serializer>(indexed: &Option<(u64, u64)>, to: S) -> Result<S::Ok, S::Error> {
    indexed.map(|(packets, sessions)| Counts { packets, sessions }).serialize(to)
}

/// The index as the ring's directories describe it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
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
    /// Segments with gaps.
    pub segments_with_gaps: u64,
    /// Stripes that shall have no rows, because they ended the indexer twice, of the newest
    /// [`LEFT_OUT_SEGMENTS_MAX`] segments with packets that are in no row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The INDEX stripe where the directories cannot be read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<StripeId>,
}

/// So many segments at most are read for what was left out of them.
pub const LEFT_OUT_SEGMENTS_MAX: usize = 64;

/// Looks at a volume; writes nothing, takes no lock.
pub fn inspect(path: &Path, members: &[PathBuf]) -> Result<Inspection, Error> {
    let reader = crate::open(path, members)?;
    let superblock = reader.superblock();
    let geometry = superblock.geometry;
    let newest = reader.newest().map(|newest| newest.sequence);
    let slots_written = newest.map_or(0, |newest| newest.next().since(geometry.first_sequence()));
    let segments = segments::read(&reader);
    let recordings =
        reader.span().map_or(Vec::new(), |span| recordings(&reader, span, &segments.entries));
    let expired = superblock.expired_through;
    let times = recordings.iter().filter_map(|recording| recording.times).reduce(cover);
    let times = times.map(|(from, to)| (from.max(expired), to.max(expired)));
    let entries = superblock.members.iter().map(|entry| &entry.path);
    let members = reader.membership().numbers().zip(entries);
    let expired_through = Some(expired).filter(|&through| through > Timestamp::MIN);
    Ok(Inspection {
        path: path.to_path_buf(),
        volume_id: superblock.volume_id,
        created: superblock.created,
        members: members.map(|(number, at)| member(path, &reader, number, at)).collect(),
        geometry: superblock.geometry,
        qualified: superblock.qualified,
        slots: geometry.slots,
        slots_used: slots_written.min(geometry.slots),
        slots_written,
        window: superblock.window,
        recipients: recipients(&reader),
        max_age_ns: Some(superblock.max_age_ns).filter(|&age| age > 0),
        expired_through,
        erases: superblock.erases,
        epoch: superblock.joined_epoch,
        clean_stop: reader.has_stopped_in_order(),
        tail: reader.span().map(|span| span.tail),
        newest,
        acknowledged: reader.span().map(|span| span.acknowledged),
        times,
        reach_ns: reach(geometry.slots, times, &recordings),
        index: summary(&reader, &segments),
        recordings,
        smallest_member_bytes: reader.smallest_member_bytes(),
    })
}

fn recipients(reader: &Reader) -> Vec<String> {
    let is_encrypted = reader.superblock().is_encrypted;
    if is_encrypted { reader.key_log().recipients() } else { Vec::new() }
}

fn member(path: &Path, reader: &Reader, number: MemberId, at: &str) -> InspectedMember {
    let is_absent = reader.membership().absent().any(|absent| absent == number);
    let why_absent = is_absent.then(|| volume::why_absent(path, reader.superblock(), number));
    InspectedMember {
        path: at.to_owned(),
        state: member_state(reader, number),
        why_absent: why_absent.flatten().map(|reason| reason.to_string()),
    }
}

/// What a member is good for.
pub(crate) fn member_state(reader: &Reader, member: MemberId) -> MemberState {
    let membership = reader.membership();
    let gap = membership.gap(member);
    let tail = reader.span().map_or(Sequence(0), |span| span.tail);
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
fn next_head(reader: &Reader, first: Sequence, last: Sequence) -> Option<Head> {
    (first..=last).each().take(to_usize(NEIGHBOURS)).find_map(|sequence| reader.head(sequence))
}

/// The last sequence of an epoch that `first` belongs to: epochs only rise along the ring.
fn end_of_epoch(reader: &Reader, epoch: Epoch, first: Sequence, last: Sequence) -> Sequence {
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
    epoch: Epoch,
    (first, last): (Sequence, Sequence),
    entries: &[SegmentEntry],
) -> Recording {
    let of_epoch = |entry: &&SegmentEntry| (first..=last).contains(&entry.summary.last.sequence);
    let own: Vec<&SegmentEntry> = entries.iter().filter(of_epoch).collect();
    let by_index = own.iter().filter(|entry| entry.summary.packets > 0);
    let by_index = by_index.map(|entry| (entry.summary.time_min, entry.summary.time_max));
    let all = (first..=last).each();
    let ends = all.clone().take(to_usize(NEIGHBOURS)).chain(all.rev().take(to_usize(NEIGHBOURS)));
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
fn share_left(reader: &Reader, epoch: Epoch, first: Sequence, last: Sequence) -> Option<f64> {
    let superblock = reader.superblock();
    let head = reader.head(first);
    if head.is_some_and(|head| head.stripe.kind == Kind::Epoch) {
        return Some(1.0);
    }
    let is_newest = epoch == superblock.joined_epoch && first >= superblock.joined_start;
    let start = is_newest.then_some(superblock.joined_start)?;
    let count = |from: Sequence| real(last.next().since(from));
    Some(count(first) / count(start).max(1.0))
}

/// What a full ring holds, if traffic goes on as in the newest recording.
fn reach(
    slots: u64,
    times: Option<(Timestamp, Timestamp)>,
    recordings: &[Recording],
) -> Option<i64> {
    times?;
    let newest = recordings.last()?;
    let (start, end) = newest.times?;
    let (used, lasted) = (newest.last + 1 - newest.first, end.since(start));
    if lasted <= 0 || used < SLOTS_FOR_RATE {
        return None;
    }
    let full = i128::from(lasted) * i128::from(slots) / i128::from(used);
    Some(i64::try_from(full).unwrap_or(i64::MAX))
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).expect("a small number")
}
