//! One slot as all its members show it: which stripes it holds, which of their pieces are whole.
//!
//! Members may disagree: writes were torn, lost or misdirected, a member returned from a past in
//! which a stripe was begun that the others have since replaced. Pieces belong together only when
//! their heads have the same identity (cid). Among identities whole data beats a VOID, a VOID beats
//! data that is not whole. What lies only in the gaps of its members may be of a past that the
//! others replaced, and stands behind both; pieces in gaps serve where others name their identity.

use device::Buffer;
use format::checksum::body_crc;
use format::head::{HEAD_BYTES, Head, PieceHead, StripeHead, StripeId};
use units::number::to_u64;
use units::{MemberId, Sequence};

use crate::heads::{Heads, bad_rows, has_trailer};
use crate::membership::Membership;

/// The bytes of one slot on every member; empty for members that are absent.
#[derive(Debug, Default)]
pub struct SlotBytes {
    members: Vec<Vec<u8>>,
    /// By member, in place of `members`: aligned, so that devices read into them without a copy.
    buffers: Vec<Option<Buffer>>,
}

impl SlotBytes {
    /// Reads the slot of `sequence` from the members at hand.
    pub fn read(heads: &Heads<'_>, sequence: Sequence) -> Self {
        let mut bytes = Self::default();
        bytes.fill(heads, sequence);
        bytes
    }

    /// The same into the memory of an earlier slot.
    pub fn fill(&mut self, heads: &Heads<'_>, sequence: Sequence) {
        heads.read_slots(sequence, self.prepare(heads.membership()));
    }

    /// Memory for a slot, by member: of a piece where the member is at hand, else empty.
    pub fn prepare(&mut self, membership: &Membership) -> &mut [Vec<u8>] {
        let piece_bytes =
            usize::try_from(membership.geometry().piece_bytes).expect("at most 2 MiB");
        self.members.resize_with(membership.numbers().count(), Vec::new);
        for (member, bytes) in membership.numbers().zip(&mut self.members) {
            let is_here = membership.of(member).is_some();
            bytes.resize(if is_here { piece_bytes } else { 0 }, 0);
        }
        &mut self.members
    }

    /// Of buffers that the slot was read into, by member; `None` where a member is absent.
    pub fn of_buffers(buffers: Vec<Option<Buffer>>) -> Self {
        Self { members: Vec::new(), buffers }
    }

    /// Bytes of all members.
    pub fn total_len(&self) -> u64 {
        let lens = self.members.iter().map(Vec::len);
        let lens = lens.chain(self.buffers.iter().flatten().map(|buffer| buffer.len()));
        to_u64(lens.sum::<usize>())
    }

    /// The bytes of one member.
    pub fn of(&self, member: MemberId) -> &[u8] {
        let member = member.place();
        match self.buffers.get(member) {
            Some(buffer) => buffer.as_deref().unwrap_or_default(),
            None => self.members.get(member).map_or(&[], Vec::as_slice),
        }
    }
}

/// A stripe of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StripeView {
    /// The common part of its heads.
    pub stripe: StripeHead,
    /// Hash of that, by which the next stripe names it.
    pub cid: [u8; 32],
    /// By column.
    pub pieces: Vec<PieceView>,
    /// Acknowledged stripes between this one and the one before it have no readable head.
    pub behind_damage: bool,
}

/// A piece of a stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceView {
    /// Number of its member.
    pub member: MemberId,
    /// Its own part; `None` when the head is unreadable or of another identity.
    pub head: Option<PieceHead>,
    /// Body rows that are not as they were sealed, ascending. Without a head it is all of them or,
    /// when the body is what the manifest of the others says, none.
    pub bad_rows: Vec<u16>,
    /// The rows behind a closing head are not what it says: no end of its block in the slot's last
    /// row, or heads of the same sequence.
    pub torn_behind: bool,
}

impl PieceView {
    /// All of it is there as it was sealed.
    pub fn is_whole(&self) -> bool {
        self.head.is_some() && self.bad_rows.is_empty() && !self.torn_behind
    }
}

impl StripeView {
    /// K members have its head, and every row can be had from K columns: what an acknowledged
    /// stripe is at least. Fewer heads than that may be of a past that only they have seen.
    pub fn is_whole(&self) -> bool {
        let heads = self.pieces.iter().filter(|piece| piece.head.is_some()).count();
        heads >= usize::from(self.stripe.geometry.data_columns) && self.is_recoverable()
    }

    /// Every row can be had from K columns.
    pub fn is_recoverable(&self) -> bool {
        self.lost_rows().next().is_none()
    }

    /// Body rows of which fewer than K columns are good.
    pub(crate) fn lost_rows(&self) -> impl Iterator<Item = u16> + '_ {
        let parity = usize::from(self.stripe.geometry.parity_columns);
        (0..self.stripe.rows).filter(move |row| {
            let bad = self.pieces.iter().filter(|piece| piece.bad_rows.contains(row));
            bad.count() > parity
        })
    }

    /// The heads of its pieces, if all are readable.
    pub fn heads(&self) -> Option<Vec<Head>> {
        let head = |piece: &PieceView| {
            let (stripe, piece) = (self.stripe.clone(), piece.head.clone()?);
            Some(Head { stripe, piece, cid: self.cid })
        };
        self.pieces.iter().map(head).collect()
    }

    /// Every piece is as it was sealed.
    pub fn is_complete(&self) -> bool {
        self.pieces.iter().all(PieceView::is_whole)
    }
}

/// What a slot holds of one sequence.
///
/// Above the watermark the first missing stripe ends the slot: what lies behind it was never
/// acknowledged or is of an older lap. At or below the watermark a missing stripe is damage, and
/// the walk goes on at the next head that fits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotView {
    /// The stripes with a readable head, in order.
    pub stripes: Vec<StripeView>,
    /// First row behind them.
    pub next_row: u16,
    /// The last of them reaches to the end of the slot.
    pub closed: bool,
}

impl SlotView {
    /// Walks the stripes of `sequence`.
    pub fn walk(
        heads: &Heads<'_>,
        sequence: Sequence,
        acknowledged: StripeId,
        bytes: &SlotBytes,
    ) -> Self {
        let walk = Walk { heads, sequence, acknowledged, bytes };
        let rows_per_slot = heads.geometry().rows_per_slot();
        let mut view = Self::default();
        while view.next_row < rows_per_slot && !view.closed {
            let Some(stripe) = walk.next(&view) else { break };
            view.next_row = stripe.stripe.first_row + 1 + stripe.stripe.rows;
            view.closed = view.next_row == rows_per_slot || stripe.stripe.kind.closes_slot();
            view.stripes.push(stripe);
        }
        view
    }
}

struct Walk<'a> {
    heads: &'a Heads<'a>,
    sequence: Sequence,
    acknowledged: StripeId,
    bytes: &'a SlotBytes,
}

impl Walk<'_> {
    /// The stripe behind those found so far: at the next row, or, where acknowledged stripes are
    /// damaged, at the first later row with a head that fits. One epoch writes a slot; only a VOID
    /// of a later mount may end it.
    fn next(&self, view: &SlotView) -> Option<StripeView> {
        let before = view.stripes.last();
        let sub = before.map_or(0, |before| before.stripe.stripe.sub + 1);
        let expected = StripeId { sequence: self.sequence, sub };
        let follows =
            |head: &Head| self.heads.follows(before.map(|it| (&it.stripe, &it.cid)), head);
        let at_hand =
            self.at_row(view.next_row, &|head| head.stripe.stripe == expected && follows(head));
        if at_hand.is_some() || expected > self.acknowledged {
            return at_hand;
        }
        let has_key = self.heads.membership().head_key().is_some();
        let epoch = before.map(|before| before.stripe.epoch);
        (view.next_row + 1..self.heads.geometry().rows_per_slot())
            .find_map(|row| {
                self.at_row(row, &|head| {
                    let is_later = head.stripe.stripe > expected;
                    if has_key {
                        is_later && follows(head)
                    } else {
                        is_later
                            && epoch.is_none_or(|epoch| epoch == head.stripe.epoch)
                            && self.is_vouched_for(head, (expected, view.next_row))
                    }
                })
            })
            .map(|stripe| StripeView { behind_damage: true, ..stripe })
    }

    /// Without a key, and behind a stripe whose head no member has, a head counts when it knows the
    /// checksum of that stripe's body, on any member: then the writer of that wrote it.
    fn is_vouched_for(&self, head: &Head, (lost, lost_row): (StripeId, u16)) -> bool {
        let stripe = &head.stripe;
        let rows = usize::from(lost_row) + 1..usize::from(stripe.first_row);
        if stripe.previous != lost || rows.is_empty() {
            return false;
        }
        let knows = |member: MemberId| {
            let own = self.heads.head_in(
                member,
                self.bytes.of(member),
                stripe.first_row,
                self.sequence,
            )?;
            let body = self.bytes.of(member).get(rows.start * HEAD_BYTES..rows.end * HEAD_BYTES)?;
            let sealed = stripe.previous_manifest.get(usize::from(own.piece.column))?;
            (own.cid == head.cid && body_crc(body) == *sealed).then_some(())
        };
        self.heads.membership().present().any(|member| knows(member).is_some())
    }

    /// The stripe that begins in row `row`, judged over all members.
    fn at_row(&self, row: u16, fits: &dyn Fn(&Head) -> bool) -> Option<StripeView> {
        let members = self.heads.membership().present();
        let found: Vec<Head> = members
            .filter_map(|member| {
                self.heads.head_in(member, self.bytes.of(member), row, self.sequence)
            })
            .filter(fits)
            .collect();
        let mut identities: Vec<&Head> = Vec::new();
        for head in &found {
            if identities.iter().all(|known| known.cid != head.cid) {
                identities.push(head);
            }
        }
        let views = identities.into_iter().map(|identity| {
            let mut heads = found.iter().filter(|head| head.cid == identity.cid);
            let counts = heads.any(|head| self.heads.counts(head));
            (self.view_of(identity, &found), counts)
        });
        let best = views.max_by_key(|(view, counts)| {
            let rank = match (view.is_whole(), view.stripe.kind.closes_slot(), counts) {
                (true, false, true) => 4,
                (_, true, true) => 3,
                (true, false, false) => 2,
                (_, true, false) => 1,
                (false, false, _) => 0,
            };
            (rank, view.stripe.epoch, view.pieces.iter().filter(|piece| piece.is_whole()).count())
        });
        best.map(|(view, _)| view)
    }

    fn view_of(&self, identity: &Head, found: &[Head]) -> StripeView {
        let stripe = identity.stripe.clone();
        let geometry = stripe.geometry;
        let pieces = (0..geometry.columns()).map(|column| {
            let member = geometry.member_of(self.sequence, column);
            let ours =
                found.iter().find(|head| head.piece.member == member && head.cid == identity.cid);
            let bytes = self.bytes.of(member);
            let Some(head) = ours else {
                let sealed = stripe.manifest.get(usize::from(column));
                let as_sealed =
                    body_of(&stripe, bytes).map(body_crc).is_some_and(|crc| Some(&crc) == sealed);
                let bad_rows = if as_sealed { Vec::new() } else { (0..stripe.rows).collect() };
                return PieceView { member, head: None, bad_rows, torn_behind: false };
            };
            PieceView {
                member,
                head: Some(head.piece.clone()),
                bad_rows: bad_rows(head, bytes),
                torn_behind: stripe.kind.closes_slot() && is_torn_behind(self.heads, head, bytes),
            }
        });
        let pieces = pieces.collect();
        StripeView { stripe, cid: identity.cid, pieces, behind_damage: false }
    }
}

/// The block of a closing head does not end in the slot's last row, or heads of the same sequence
/// lie inside it.
pub fn is_torn_behind(heads: &Heads<'_>, head: &Head, bytes: &[u8]) -> bool {
    let (stripe, member) = (&head.stripe, head.piece.member);
    let mut rows = stripe.first_row + 1..stripe.geometry.rows_per_slot();
    let head_in = |row| heads.head_in(member, bytes, row, stripe.stripe.sequence);
    !has_trailer(head, bytes) || rows.any(|row| head_in(row).is_some())
}

/// Rows of a body in the bytes of its slot.
pub(crate) fn body_of<'a>(stripe: &StripeHead, slot: &'a [u8]) -> Option<&'a [u8]> {
    let begin = (usize::from(stripe.first_row) + 1) * HEAD_BYTES;
    slot.get(begin..begin + usize::from(stripe.rows) * HEAD_BYTES)
}

#[cfg(test)]
mod tests;
