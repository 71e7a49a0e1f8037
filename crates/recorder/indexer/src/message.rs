//! What the two processes say to each other: frames over a stream of bytes.
//!
//! A frame is its length behind these eight bytes (u32), its kind (u32), and that many bytes; all
//! numbers are little endian. The owner of the volume sends [`Begin`] first, then [`Request`]s; the
//! worker sends [`Answer`]s. Neither trusts the other: every decode is bounded by its input and by
//! the limits here, never panics, and leaves nothing over.

use format::directory::Summary;
use format::head::{StripeId, VolumeId};
use index::LeftOut;
use serde::Serialize;
use session::{Config, Stats};
use units::number::to_u64;
use units::{Epoch, Sequence, Timestamp, start_of};

/// Both sides are the same program, unless two versions were mixed.
pub(crate) const VERSION: u32 = 2;
/// Bytes in front of a frame's content.
pub(crate) const FRAME_BYTES: usize = 8;
/// Longest frame of a request: where 65 536 packets begin, for each of 24 columns.
pub(crate) const REQUEST_BYTES_MAX: usize = 24 * (4 * 65_536 + 64) + 4096;
/// Longest frame of an answer besides a segment's file.
pub(crate) const ANSWER_BYTES_MAX: usize = 8192;
/// Longest file of a segment: what the ring holds of it is a small part of its packets.
pub const PARQUET_BYTES_MAX: u64 = 256 << 20;
/// Bytes of files of segments before a run that are handed over at most: of a million rows.
pub const BEFORE_BYTES_MAX: u64 = 64 << 20;
/// Longest text that is taken over.
const TEXT_BYTES_MAX: usize = 4096;
/// Most memories, pieces of a stripe, and stretches that are left out of a segment.
const LIST_MAX: usize = 4096;

/// Which run of stripes something belongs to; each has a session table and a segment of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunKind {
    /// Stripes in the order in which they are recorded.
    Live,
    /// Stripes that were left without an index, in their order.
    Past,
}

impl RunKind {
    /// Both kinds of runs.
    pub const ALL: [Self; 2] = [Self::Live, Self::Past];
}

/// A stretch of memory that both processes see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MemoryShape {
    /// Buffers in it.
    pub(crate) count: u32,
    /// Bytes of each.
    pub(crate) size: u32,
}

/// The first frame: what the worker is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Begin {
    pub(crate) volume: VolumeId,
    /// Chooses the places of sessions in memory.
    pub(crate) hash_seed: u64,
    /// The key and the timeouts of sessions; `None` makes segments without rows.
    pub(crate) sessions: Option<Config>,
    /// In the order of their descriptors.
    pub(crate) memories: Vec<MemoryShape>,
}

/// Where a piece's packets lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PieceAt {
    /// Which memory, and which of its buffers.
    pub(crate) memory: u8,
    pub(crate) buffer: u32,
    /// Column of the stripe.
    pub(crate) column: u8,
    /// The body within the buffer.
    pub(crate) begin: u32,
    pub(crate) end: u32,
    /// Where the packets' blocks begin in the body, as far as that is known.
    pub(crate) starts: Vec<u32>,
}

/// A stripe whose packets shall have rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StripeAt {
    pub(crate) run_kind: RunKind,
    pub(crate) stripe: StripeId,
    pub(crate) epoch: Epoch,
    /// It comes behind later ones: its sessions are made apart from those.
    pub(crate) is_late: bool,
    /// Payload is not looked at for names.
    pub(crate) without_names: bool,
    pub(crate) pieces: Vec<PieceAt>,
}

/// From when to when packets came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Earliest time of a packet.
    pub min: Timestamp,
    /// Latest time of a packet.
    pub max: Timestamp,
}

impl Times {
    /// Of no packets: what is added to it is all.
    pub const NONE: Self = Self { min: Timestamp::MAX, max: Timestamp::MIN };

    /// Extends the times by those of `other`.
    pub fn add(&mut self, other: Self) {
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }
}

/// What becomes of sessions at the end of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// They go on into the next one.
    GoesOn,
    /// They end with it.
    Last,
    /// They go on in stripes that this run does not get.
    Elsewhere,
}

/// The end of a segment, by the one who knows which stripes it covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closing {
    /// Kind of the run that the segment belongs to.
    pub run_kind: RunKind,
    /// First stripe: the segment's id.
    pub first: StripeId,
    /// Last stripe of the segment.
    pub last: StripeId,
    /// Opening of the volume that wrote them.
    pub epoch: Epoch,
    /// Earliest and latest packet of all its stripes, of those without rows, too.
    pub times: Times,
    /// Packets of all its stripes.
    pub packets: u64,
    /// Those of them in stripes that were not handed over.
    pub missed_packets: u64,
    /// Stripes among those that will never have rows.
    pub left_out: Vec<LeftOut>,
    /// A larger file is not taken. The worker does not hear it.
    pub index_bytes_max: u64,
    /// Whether sessions go on.
    pub rest: Rest,
}

/// A segment that was made before: its sessions may go on. Its file follows as bytes without a
/// frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Before {
    /// Kind of the run in which they may.
    pub(crate) run_kind: RunKind,
    /// Opening of the volume that wrote its stripes, as those of the run.
    pub(crate) epoch: Epoch,
    /// Other segments, newer ones, came before it.
    pub(crate) number: u32,
    /// When the first packet of the run came, or earlier.
    pub(crate) at: Timestamp,
    pub(crate) parquet_bytes: u64,
}

/// What the worker is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Before(Before),
    Stripe(StripeAt),
    Close(Closing),
    /// Nothing else needs the processors: so many threads encode.
    UseThreads(u32),
}

/// What was left out because its memory was used up, in the order in which it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GaveWay {
    /// Payloads that were not looked at for names.
    pub names: u64,
    /// Messages in parts that were not kept for the names in them.
    pub heads: u64,
    /// Rows that were written early because lists of pieces had grown long.
    pub pieces: u64,
    /// Rows that were written early because the table was full.
    pub sessions: u64,
}

impl GaveWay {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Self) {
        self.names = self.names.saturating_add(other.names);
        self.heads = self.heads.saturating_add(other.heads);
        self.pieces = self.pieces.saturating_add(other.pieces);
        self.sessions = self.sessions.saturating_add(other.sessions);
    }

    /// What happened since `before`.
    pub(crate) fn between(before: &Stats, after: &Stats) -> Self {
        Self {
            names: after.names_refused.saturating_sub(before.names_refused),
            heads: after.heads_refused.saturating_sub(before.heads_refused),
            pieces: after.crowded.saturating_sub(before.crowded),
            sessions: after.evicted.saturating_sub(before.evicted),
        }
    }
}

/// A stripe's packets have rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Packets in the stripe.
    pub packets: u64,
    /// Those whose payload was not looked at for names.
    pub unread: u64,
    /// Rows of its run's segment that have ended so far.
    pub rows: u64,
    /// Memory that they take.
    pub row_bytes: u64,
    /// Column and offset of a block that is none, where the walk ended.
    pub malformed: Option<(u8, u32)>,
    /// What was left out meanwhile for lack of memory.
    pub gave_way: GaveWay,
}

/// A segment as its file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHead {
    pub(crate) summary: Summary,
    pub(crate) parquet_bytes: u64,
}

/// What the worker answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It is ready; what its confinement lacks here, one line each.
    Hello { version: u32, notes: Vec<String> },
    /// Of which stripe; in the order of the stripes.
    Taken(StripeId, Taken),
    /// In the order of the closings; the file follows as bytes without a frame.
    Segment(SegmentHead),
    /// In place of a segment: why there is none.
    Failed(String),
}

/// The bytes are no frame that the other side sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed {what}")]
pub struct Malformed {
    what: &'static str,
}

impl Malformed {
    /// A frame longer than any.
    pub(crate) const LENGTH: Self = Self { what: "length" };
}

/// Appends a frame: its kind and what `content` writes.
fn frame(out: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Out<'_>)) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(kind.to_le_bytes());
    content(&mut Out(out));
    let length = u32::try_from(out.len() - start - FRAME_BYTES).expect("frames are bounded");
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Length of the content and kind, by the bytes in front of it.
pub(crate) fn frame_head(bytes: [u8; FRAME_BYTES]) -> (usize, u32) {
    let ([length, kind], []) = bytes.as_chunks() else {
        unreachable!("eight bytes are two numbers")
    };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    (length, u32::from_le_bytes(*kind))
}

struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn flag(&mut self, value: bool) {
        self.byte(value.into());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.0.extend(value.to_le_bytes());
    }

    fn stripe(&mut self, StripeId { sequence, sub }: StripeId) {
        self.u64(sequence.get());
        self.u32(sub.into());
    }

    /// A time, or never.
    fn timeout(&mut self, value: Option<i64>) {
        self.flag(value.is_some());
        self.i64(value.unwrap_or_default());
    }

    /// At most [`TEXT_BYTES_MAX`] bytes of it.
    fn text(&mut self, text: &str) {
        let text = start_of(text, TEXT_BYTES_MAX);
        self.count(text.len());
        self.0.extend(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("lists are bounded"));
    }
}

/// Reads fields from the front.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn stripe(&mut self) -> Option<StripeId> {
        Some(StripeId { sequence: Sequence(self.u64()?), sub: self.u32()?.try_into().ok()? })
    }

    fn timeout(&mut self, into: &mut Option<i64>) -> Option<()> {
        let is_some = self.flag()?;
        let value = self.i64()?;
        *into = is_some.then_some(value);
        Some(())
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count(TEXT_BYTES_MAX)?;
        str::from_utf8(self.bytes(length)?).ok().map(str::to_owned)
    }

    fn count(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.u32()?).ok().filter(|&count| count <= most)
    }

    /// A list whose length comes first: grows by what is there, not by what is announced.
    fn list<T>(
        &mut self,
        most: usize,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count(most)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Some(list)
    }

    fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

const BEGIN: u32 = 1;
const STRIPE: u32 = 2;
const CLOSE: u32 = 3;
const USE_THREADS: u32 = 4;
const BEFORE: u32 = 5;
const HELLO: u32 = 17;
const TAKEN: u32 = 18;
const SEGMENT: u32 = 19;
const FAILED: u32 = 20;

impl Begin {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        frame(out, BEGIN, |out| {
            out.u32(VERSION);
            out.0.extend(self.volume.0);
            out.u64(self.hash_seed);
            out.flag(self.sessions.is_some());
            if let Some(config) = &self.sessions {
                put_config(out, config);
            }
            out.count(self.memories.len());
            for memory in &self.memories {
                out.u32(memory.count);
                out.u32(memory.size);
            }
        });
    }

    pub(crate) fn decode(kind: u32, content: &[u8]) -> Result<Self, Malformed> {
        let read = || {
            let mut fields = In(content);
            if kind != BEGIN || fields.u32()? != VERSION {
                return None;
            }
            let begin = Self {
                volume: VolumeId(fields.array()?),
                hash_seed: fields.u64()?,
                sessions: if fields.flag()? { Some(get_config(&mut fields)?) } else { None },
                memories: fields.list(LIST_MAX, |fields| {
                    Some(MemoryShape { count: fields.u32()?, size: fields.u32()? })
                })?,
            };
            fields.end(begin)
        };
        read().ok_or(Malformed { what: "beginning" })
    }
}

fn put_config(out: &mut Out<'_>, config: &Config) {
    let Config {
        tcp_timeout_ns,
        tcp_linger_ns,
        udp_timeout_ns,
        icmp_timeout_ns,
        other_timeout_ns,
        slice_ns,
        vlan_in_key,
        session_count_max,
        head_bytes_max,
        names_bytes_max,
        piece_bytes_max,
    } = *config;
    for time in [tcp_timeout_ns, udp_timeout_ns, icmp_timeout_ns, other_timeout_ns, slice_ns] {
        out.timeout(time);
    }
    out.i64(tcp_linger_ns);
    out.flag(vlan_in_key);
    for most in [session_count_max, head_bytes_max, names_bytes_max, piece_bytes_max] {
        out.u64(to_u64(most));
    }
}

fn get_config(fields: &mut In<'_>) -> Option<Config> {
    let mut config = Config::default();
    for time in [
        &mut config.tcp_timeout_ns,
        &mut config.udp_timeout_ns,
        &mut config.icmp_timeout_ns,
        &mut config.other_timeout_ns,
        &mut config.slice_ns,
    ] {
        fields.timeout(time)?;
    }
    config.tcp_linger_ns = fields.i64()?;
    config.vlan_in_key = fields.flag()?;
    for most in [
        &mut config.session_count_max,
        &mut config.head_bytes_max,
        &mut config.names_bytes_max,
        &mut config.piece_bytes_max,
    ] {
        *most = fields.u64()?.try_into().ok()?;
    }
    let is_possible = config.session_count_max >= 1
        && u32::try_from(config.session_count_max).is_ok()
        && config.slice_ns.is_none_or(|slice| slice > 0);
    is_possible.then_some(config)
}

impl Request {
    /// Bytes of the file that follows the frame.
    pub(crate) fn file_bytes(&self) -> u64 {
        match self {
            Self::Before(before) => before.parquet_bytes,
            Self::Stripe(_) | Self::Close(_) | Self::UseThreads(_) => 0,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Before(before) => frame(out, BEFORE, |out| put_before(out, before)),
            Self::Stripe(stripe) => frame(out, STRIPE, |out| put_stripe(out, stripe)),
            Self::Close(closing) => frame(out, CLOSE, |out| put_closing(out, closing)),
            Self::UseThreads(threads) => frame(out, USE_THREADS, |out| out.u32(*threads)),
        }
    }

    pub(crate) fn decode(kind: u32, content: &[u8]) -> Result<Self, Malformed> {
        let read = || {
            let mut fields = In(content);
            let request = match kind {
                BEFORE => Self::Before(get_before(&mut fields)?),
                STRIPE => Self::Stripe(get_stripe(&mut fields)?),
                CLOSE => Self::Close(get_closing(&mut fields)?),
                USE_THREADS => Self::UseThreads(fields.u32()?),
                _ => return None,
            };
            fields.end(request)
        };
        read().ok_or(Malformed { what: "request" })
    }
}

fn put_run_kind(out: &mut Out<'_>, run_kind: RunKind) {
    out.flag(run_kind == RunKind::Past);
}

fn get_run_kind(fields: &mut In<'_>) -> Option<RunKind> {
    Some(if fields.flag()? { RunKind::Past } else { RunKind::Live })
}

fn put_before(out: &mut Out<'_>, before: &Before) {
    put_run_kind(out, before.run_kind);
    out.u32(before.epoch.get());
    out.u32(before.number);
    out.i64(before.at.0);
    out.u64(before.parquet_bytes);
}

fn get_before(fields: &mut In<'_>) -> Option<Before> {
    let before = Before {
        run_kind: get_run_kind(fields)?,
        epoch: Epoch(fields.u32()?),
        number: fields.u32()?,
        at: Timestamp(fields.i64()?),
        parquet_bytes: fields.u64()?,
    };
    Some(before).filter(|before| before.parquet_bytes <= BEFORE_BYTES_MAX)
}

fn put_stripe(out: &mut Out<'_>, stripe: &StripeAt) {
    put_run_kind(out, stripe.run_kind);
    out.stripe(stripe.stripe);
    out.u32(stripe.epoch.get());
    out.flag(stripe.is_late);
    out.flag(stripe.without_names);
    out.count(stripe.pieces.len());
    for piece in &stripe.pieces {
        out.byte(piece.memory);
        out.u32(piece.buffer);
        out.byte(piece.column);
        out.u32(piece.begin);
        out.u32(piece.end);
        out.count(piece.starts.len());
        piece.starts.iter().for_each(|start| out.u32(*start));
    }
}

fn get_stripe(fields: &mut In<'_>) -> Option<StripeAt> {
    Some(StripeAt {
        run_kind: get_run_kind(fields)?,
        stripe: fields.stripe()?,
        epoch: Epoch(fields.u32()?),
        is_late: fields.flag()?,
        without_names: fields.flag()?,
        pieces: fields.list(LIST_MAX, |fields| {
            let (memory, buffer, column) = (fields.byte()?, fields.u32()?, fields.byte()?);
            let (begin, end) = (fields.u32()?, fields.u32()?);
            let count = fields.count(REQUEST_BYTES_MAX)?;
            let (starts, []) = fields.bytes(count.checked_mul(4)?)?.as_chunks() else {
                return None;
            };
            let starts = starts.iter().map(|start| u32::from_le_bytes(*start)).collect();
            Some(PieceAt { memory, buffer, column, begin, end, starts })
        })?,
    })
}

fn put_closing(out: &mut Out<'_>, closing: &Closing) {
    put_run_kind(out, closing.run_kind);
    out.stripe(closing.first);
    out.stripe(closing.last);
    out.u32(closing.epoch.get());
    out.i64(closing.times.min.0);
    out.i64(closing.times.max.0);
    out.u64(closing.packets);
    out.u64(closing.missed_packets);
    out.count(closing.left_out.len().min(LIST_MAX));
    for left in closing.left_out.iter().take(LIST_MAX) {
        out.stripe(left.first);
        out.stripe(left.last);
        out.u64(left.packets);
    }
    out.byte(match closing.rest {
        Rest::GoesOn => 0,
        Rest::Last => 1,
        Rest::Elsewhere => 2,
    });
}

fn get_closing(fields: &mut In<'_>) -> Option<Closing> {
    Some(Closing {
        run_kind: get_run_kind(fields)?,
        first: fields.stripe()?,
        last: fields.stripe()?,
        epoch: Epoch(fields.u32()?),
        times: Times { min: Timestamp(fields.i64()?), max: Timestamp(fields.i64()?) },
        packets: fields.u64()?,
        missed_packets: fields.u64()?,
        left_out: fields.list(LIST_MAX, |fields| {
            let (first, last) = (fields.stripe()?, fields.stripe()?);
            Some(LeftOut { first, last, packets: fields.u64()? })
        })?,
        index_bytes_max: u64::MAX,
        rest: match fields.byte()? {
            0 => Rest::GoesOn,
            1 => Rest::Last,
            2 => Rest::Elsewhere,
            _ => return None,
        },
    })
}

impl Answer {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, notes } => frame(out, HELLO, |out| {
                out.u32(*version);
                let notes = notes.iter().filter(|note| note.len() < 256).take(16);
                out.count(notes.clone().count());
                notes.for_each(|note| out.text(note));
            }),
            Self::Taken(stripe, taken) => frame(out, TAKEN, |out| {
                out.stripe(*stripe);
                for number in [taken.packets, taken.unread, taken.rows, taken.row_bytes] {
                    out.u64(number);
                }
                out.flag(taken.malformed.is_some());
                let (column, offset) = taken.malformed.unwrap_or_default();
                out.byte(column);
                out.u32(offset);
                let GaveWay { names, heads, pieces, sessions } = taken.gave_way;
                for count in [names, heads, pieces, sessions] {
                    out.u64(count);
                }
            }),
            Self::Segment(SegmentHead { summary, parquet_bytes }) => frame(out, SEGMENT, |out| {
                out.stripe(summary.first);
                out.stripe(summary.last);
                out.i64(summary.time_min.0);
                out.i64(summary.time_max.0);
                out.u64(summary.sessions);
                out.u64(summary.packets);
                for flag in [summary.unindexed, summary.gaps, summary.unread] {
                    out.flag(flag);
                }
                out.u64(*parquet_bytes);
            }),
            Self::Failed(why) => frame(out, FAILED, |out| out.text(why)),
        }
    }

    pub(crate) fn decode(kind: u32, content: &[u8]) -> Result<Self, Malformed> {
        let read = || {
            let mut fields = In(content);
            let answer = match kind {
                HELLO => Self::Hello { version: fields.u32()?, notes: fields.list(16, In::text)? },
                TAKEN => {
                    let stripe = fields.stripe()?;
                    let (packets, unread) = (fields.u64()?, fields.u64()?);
                    let (rows, row_bytes) = (fields.u64()?, fields.u64()?);
                    let is_malformed = fields.flag()?;
                    let at = (fields.byte()?, fields.u32()?);
                    let malformed = is_malformed.then_some(at);
                    let gave_way = GaveWay {
                        names: fields.u64()?,
                        heads: fields.u64()?,
                        pieces: fields.u64()?,
                        sessions: fields.u64()?,
                    };
                    let taken = Taken { packets, unread, rows, row_bytes, malformed, gave_way };
                    Self::Taken(stripe, taken)
                }
                SEGMENT => {
                    let summary = Summary {
                        first: fields.stripe()?,
                        last: fields.stripe()?,
                        time_min: Timestamp(fields.i64()?),
                        time_max: Timestamp(fields.i64()?),
                        sessions: fields.u64()?,
                        packets: fields.u64()?,
                        unindexed: fields.flag()?,
                        gaps: fields.flag()?,
                        unread: fields.flag()?,
                    };
                    Self::Segment(SegmentHead { summary, parquet_bytes: fields.u64()? })
                }
                FAILED => Self::Failed(fields.text()?),
                _ => return None,
            };
            fields.end(answer)
        };
        read().ok_or(Malformed { what: "answer" })
    }
}

#[cfg(test)]
pub(crate) mod tests;
