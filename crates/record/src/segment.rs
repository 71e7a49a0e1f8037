//! The segment under way: its rows, its bounds, and when it ends.

use std::collections::BTreeMap;

use format::directory::Gap;
use format::head::{StripeId, VolumeId};
use format::piece::Packets;
use format::slice::PieceId;
use index::{Identity, Interface, SegmentMeta};
use session::{PacketView, Slice, Table};
use units::Timestamp;

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
    /// Rows at which it ends in any case: they are held in memory.
    pub(crate) rows_max: usize,
}

impl SegmentLimits {
    /// A segment ends at 1 GiB, but not before 60 s; at 1/16 of the ring (at least 16 slots, so
    /// that the slot which its index may leave half empty stays small against it), after an
    /// hour, or when its rows fill 256 MiB or so.
    pub(crate) fn for_ring(slots: u64, piece_bytes: u32) -> Self {
        let piece = u64::from(piece_bytes);
        Self {
            bytes: 1 << 30,
            age_min_ns: 60_000_000_000,
            bytes_max: (slots / 16).max(16) * piece,
            age_max_ns: 3_600_000_000_000,
            rows_max: 1 << 19,
        }
    }
}

/// A segment that is being filled.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    first: StripeId,
    last: StripeId,
    /// `CID` of the first stripe in the slot of the last one, where it is known.
    slot_cid: Option<[u8; 32]>,
    epoch: u32,
    started_ns: i64,
    bytes: u64,
    unindexed: u64,
    unread: u64,
    times: Times,
    gaps: Vec<Gap>,
    interfaces: BTreeMap<u32, Interface>,
    vlan_in_key: bool,
    /// Rows of sessions and slices that have ended so far.
    pub(crate) rows: Vec<Slice>,
}

impl OpenSegment {
    pub(crate) fn new(first: StripeId, epoch: u32, now_ns: i64) -> Self {
        Self {
            first,
            last: first,
            slot_cid: None,
            epoch,
            started_ns: now_ns,
            bytes: 0,
            unindexed: 0,
            unread: 0,
            times: Times { packets: 0, min: Timestamp::MAX, max: Timestamp::MIN },
            gaps: Vec::new(),
            interfaces: BTreeMap::new(),
            vlan_in_key: false,
            rows: Vec::new(),
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Takes the packets of one piece into account; without a table they stay without rows.
    pub(crate) fn take(
        &mut self,
        table: Option<&mut Table>,
        (stripe, column): (StripeId, u8),
        walk: Packets<'_>,
    ) {
        let piece = PieceId { sequence: stripe.sequence, sub: stripe.sub, column };
        let mut views = Views { walk, piece, times: self.times };
        if let Some(table) = table {
            self.vlan_in_key = table.vlan_in_key();
            let unread_before = table.stats().unread;
            table.push_all(&mut views, &mut self.rows);
            self.unread += table.stats().unread - unread_before;
        } else {
            self.unindexed += u64::try_from(views.by_ref().count()).expect("counts fit 64 bits");
        }
        let Views { walk, times, .. } = views;
        self.times = times;
        self.gaps.extend_from_slice(walk.gaps());
        for known in walk.interfaces() {
            self.interfaces.entry(known.id).or_insert_with(|| Interface {
                id: known.id,
                link_type: known.link_type,
                name: known.name.clone(),
            });
        }
        self.bytes += u64::try_from(walk.body_len()).expect("lengths fit 64 bits");
        self.last = self.last.max(stripe);
    }

    /// Packets whose payload was not looked at for names.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    pub(crate) fn last(&self) -> StripeId {
        self.last
    }

    /// The slot of `stripe`, which was taken, begins with the stripe of this `CID`.
    pub(crate) fn ends_in_slot_of(&mut self, stripe: StripeId, slot_cid: Option<[u8; 32]>) {
        if stripe == self.last {
            self.slot_cid = slot_cid;
        }
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
            || self.rows.len() >= limits.rows_max
    }

    /// What its file says of it; `missed_packets` are those of stripes that were never taken.
    pub(crate) fn meta(
        &self,
        volume: VolumeId,
        missed_packets: u64,
        recording: Option<String>,
    ) -> SegmentMeta {
        SegmentMeta {
            volume,
            epoch: self.epoch,
            first: self.first,
            last: self.last,
            time_min: self.times.min,
            time_max: self.times.max,
            packets: self.times.packets + missed_packets,
            unindexed_packets: self.unindexed + missed_packets,
            unread_packets: self.unread,
            gaps: self.gaps.clone(),
            interfaces: self.interfaces.values().cloned().collect(),
            recording,
            vlan_in_key: self.vlan_in_key,
        }
    }
}

/// How many packets there were, and from when to when.
#[derive(Clone, Copy, Debug)]
struct Times {
    packets: u64,
    min: Timestamp,
    max: Timestamp,
}

/// The packets of a piece as the session table sees them.
struct Views<'a> {
    walk: Packets<'a>,
    piece: PieceId,
    times: Times,
}

impl<'a> Iterator for Views<'a> {
    type Item = PacketView<'a>;

    /// Handed out through memory, a view would be read in other words than it was written in, and
    /// wait for them: a fifth of what a small packet costs here.
    #[expect(clippy::inline_always, reason = "the compiler leaves it a call")]
    #[inline(always)]
    fn next(&mut self) -> Option<PacketView<'a>> {
        // A body that was sealed here, or verified, is well formed; what is not ends the walk.
        let packet = self.walk.next()?.ok()?;
        let interface = self.walk.interfaces().get(packet.interface)?;
        let times = &mut self.times;
        times.packets += 1;
        times.min = times.min.min(packet.timestamp);
        times.max = times.max.max(packet.timestamp);
        let (begin, end) = packet.span();
        Some(PacketView {
            timestamp: packet.timestamp,
            interface: interface.id,
            link_type: interface.link_type,
            original_len: packet.original_len,
            data: packet.data,
            piece: self.piece,
            begin,
            end,
        })
    }
}
