//! The account of a segment under way: which stripes it covers, and when it ends. Its rows are the
//! indexer's.

use core::mem;

use format::head::StripeId;
use index::{Identity, LeftOut};
use indexer::{Closing, Rest, RunKind, Stripe, Taken, Times};
use units::Epoch;
use units::number::to_u64;

use crate::late::Left;

/// Most stretches of poison that a segment lists; one more ends it.
const LEFT_OUT_MAX: usize = 1024;

/// An index may be twice as large as its packets, when each of them is a session with names, and
/// this.
const INDEX_BYTES_SLACK: u64 = 4 << 20;

/// When a segment ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentLimits {
    /// Bytes of data stripes after which it may end ...
    pub(crate) bytes: u64,
    /// ... when it is at least this old ...
    pub(crate) age_min_ns: i64,
    /// ... and after which it ends in any case.
    pub(crate) bytes_max: u64,
    /// Age at which it ends in any case.
    pub(crate) age_max_ns: i64,
    /// Rows, and bytes of them, at which it ends in any case: the indexer holds them in memory.
    pub(crate) rows_max: u64,
    pub(crate) row_bytes_max: u64,
}

impl SegmentLimits {
    /// A segment ends at 1 GiB, but not before 60 s; at 1/16 of the ring (at least 16 slots, so
    /// that the slot which its index may leave half empty stays small against it), after an
    /// hour, or when it has 512 Ki rows, or rows of 256 MiB.
    pub(crate) fn for_ring(slots: u64, piece_bytes: u32) -> Self {
        let piece = u64::from(piece_bytes);
        Self {
            bytes: 1 << 30,
            age_min_ns: 60_000_000_000,
            bytes_max: (slots / 16).max(16) * piece,
            age_max_ns: 3_600_000_000_000,
            rows_max: 1 << 19,
            row_bytes_max: indexer::ROW_BYTES_MAX,
        }
    }
}

/// A segment that is being filled.
#[derive(Clone, Debug)]
pub(crate) struct OpenSegment {
    pub(crate) first: StripeId,
    pub(crate) last: StripeId,
    /// `CID` of the first stripe in the slot of the last one, where it is known.
    slot_cid: Option<[u8; 32]>,
    pub(crate) epoch: Epoch,
    started_ns: i64,
    bytes: u64,
    pub(crate) times: Times,
    /// Packets that have rows, in their order or later.
    pub(crate) packets: u64,
    /// Those of them that came late.
    pub(crate) late_packets: u64,
    pub(crate) unread: u64,
    rows: u64,
    row_bytes: u64,
    left_out: Vec<LeftOut>,
}

impl OpenSegment {
    pub(crate) fn new(first: StripeId, epoch: Epoch, now_ns: i64) -> Self {
        Self {
            first,
            last: first,
            slot_cid: None,
            epoch,
            started_ns: now_ns,
            bytes: 0,
            times: Times::NONE,
            packets: 0,
            late_packets: 0,
            unread: 0,
            rows: 0,
            row_bytes: 0,
            left_out: Vec::new(),
        }
    }

    /// The packets of a stripe have rows.
    pub(crate) fn took(&mut self, stripe: &Stripe, taken: &Taken) {
        self.reaches(stripe);
        self.packets = self.packets.saturating_add(taken.packets);
        if stripe.is_late {
            self.late_packets = self.late_packets.saturating_add(taken.packets);
        }
        self.unread = self.unread.saturating_add(taken.unread);
        (self.rows, self.row_bytes) = (taken.rows, taken.row_bytes);
    }

    /// The packets of a stripe will never have rows.
    pub(crate) fn leaves_out(&mut self, stripe: &Stripe) {
        self.reaches(stripe);
        let (first, packets) = (stripe.id, stripe.packets);
        self.left_out.push(LeftOut { first, last: first, packets });
    }

    /// The same of everything up to the stripe `last`.
    pub(crate) fn leaves_out_all(&mut self, last: StripeId, packets: u64, times: Times) {
        self.times.add(times);
        self.left_out.push(LeftOut { first: self.first, last, packets });
        self.last = last;
    }

    fn reaches(&mut self, stripe: &Stripe) {
        self.times.add(stripe.times);
        let bytes: usize = stripe.pieces.iter().map(|piece| piece.body.len()).sum();
        self.bytes = self.bytes.saturating_add(to_u64(bytes));
        if stripe.id >= self.last {
            (self.last, self.slot_cid) = (stripe.id, stripe.slot_cid);
        }
        self.first = self.first.min(stripe.id);
    }

    /// Which stripes these are, whatever their numbers.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.slot_cid.as_ref().map(|cid| Identity::new(self.last, cid))
    }

    pub(crate) fn is_due(&self, limits: &SegmentLimits, now_ns: i64) -> bool {
        let age = now_ns.saturating_sub(self.started_ns);
        (self.bytes >= limits.bytes && age >= limits.age_min_ns)
            || self.bytes >= limits.bytes_max
            || age >= limits.age_max_ns
            || self.rows >= limits.rows_max
            || self.row_bytes >= limits.row_bytes_max
            || self.left_out.len() >= LEFT_OUT_MAX
    }

    /// What the indexer gets at its end; `missed` are the packets of stripes that were never
    /// handed over.
    pub(crate) fn closing(&mut self, (run_kind, rest): (RunKind, Rest), missed: Left) -> Closing {
        self.times.add(missed.times);
        let left_out = mem::take(&mut self.left_out);
        let left = left_out.iter().map(|left| left.packets).fold(0, u64::saturating_add);
        let missed_packets = missed.packets.saturating_add(left);
        Closing {
            run_kind,
            first: self.first,
            last: self.last,
            epoch: self.epoch,
            times: self.times,
            packets: self.packets.saturating_add(missed_packets),
            missed_packets,
            left_out,
            index_bytes_max: self.bytes.saturating_mul(2).saturating_add(INDEX_BYTES_SLACK),
            rest,
        }
    }
}
