//! Checking one slot: first as what it nearly always is, whole on every member; where that fails,
//! piece by piece.

use format::head::{HEAD_BYTES, Head, Kind, StripeId};
use parity::Codec;
use units::{MemberId, Sequence};
use volume::heads::{Heads, body_in};
use volume::seal::address;
use volume::slot_view::{SlotBytes, SlotView, StripeView, is_torn_behind};
use volume::{Reader, Span};

use super::mend::Mend;
use super::outcome::Outcome;
use crate::protect::{ColumnSums, protect};
use crate::verify::{Damage, VerifyReport};

/// Checks slots, one after the other.
pub(crate) struct Checker<'a> {
    reader: &'a Reader,
    codec: Option<Codec>,
    /// Parity as it should be, for comparison.
    parity: Vec<Vec<u8>>,
    /// The slot that was checked last, where something is wrong in it.
    view: SlotView,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(reader: &'a Reader, codec: Option<Codec>) -> Self {
        let columns = usize::from(reader.geometry().parity_columns);
        let parity = vec![vec![0; reader.piece_bytes() - HEAD_BYTES]; columns];
        Self { reader, codec, parity, view: SlotView::default() }
    }

    pub(crate) fn reader(&self) -> &'a Reader {
        self.reader
    }

    /// What is damaged in the slot of `sequence`; stripes and packets are counted in `report`.
    pub(crate) fn slot(
        &mut self,
        span: Span,
        sequence: Sequence,
        bytes: &SlotBytes,
        report: &mut VerifyReport,
    ) -> Vec<Damage> {
        let reader = self.reader;
        if let Some(stripes) = reader.with_heads(|heads| self.whole(heads, span, sequence, bytes)) {
            for head in &stripes {
                report.count(&head.stripe);
            }
            return Vec::new();
        }
        self.view =
            reader.with_heads(|heads| SlotView::walk(heads, sequence, span.acknowledged, bytes));
        let damage = VerifyReport::damage_in(reader, (sequence, span), (&self.view, bytes));
        if !damage.is_empty() && reader.is_passed(sequence) {
            report.overwritten += 1;
            return Vec::new();
        }
        report.take(reader, span, &self.view);
        if damage.is_empty() {
            self.note_wrong_parity(span, bytes, report);
        }
        damage
    }

    /// How to repair what [`Checker::slot`] has just found.
    ///
    /// # Errors
    /// What becomes of it instead.
    pub(crate) fn mend(
        &self,
        span: Span,
        damage: &Damage,
        bytes: &SlotBytes,
    ) -> Result<Mend, Outcome> {
        let member = damage.member.ok_or(Outcome::Lost)?;
        let mut stripes = self.view.stripes.iter();
        let stripe = stripes.find(|view| view.stripe.stripe == damage.stripe);
        let mend = Mend::of(self.reader, stripe.ok_or(Outcome::Lost)?, bytes, member)?;
        let sequence = damage.stripe.sequence;
        let superblock = self.reader.superblock();
        let reach = 2 * u64::from(superblock.window);
        let newest = self.reader.newest().map_or(span.acknowledged.sequence, |it| it.sequence);
        let is_near = sequence + superblock.geometry.slots <= newest + reach;
        // Lap 0 is never written: on the first lap nothing is about to be overwritten.
        if is_near || self.shows_newer(sequence, member, bytes) {
            return Err(Outcome::Passing);
        }
        Ok(mend)
    }

    /// The member has begun to write the slot anew.
    fn shows_newer(&self, sequence: Sequence, member: MemberId, bytes: &SlotBytes) -> bool {
        let slot = self.reader.geometry().slot(sequence);
        let heads =
            self.reader.with_heads(|heads| heads.all_in_slot(member, slot, bytes.of(member)));
        heads.iter().any(|head| head.stripe.stripe.sequence > sequence)
    }

    /// The heads of the slot's stripes, one of each, if all of it is on every member as it was
    /// acknowledged, and parity is what the data make it.
    fn whole(
        &mut self,
        heads: &Heads<'_>,
        span: Span,
        sequence: Sequence,
        bytes: &SlotBytes,
    ) -> Option<Vec<Head>> {
        let mut stripes: Vec<Head> = Vec::new();
        let (mut row, mut expected) = (0, StripeId { sequence, sub: 0 });
        while row < heads.geometry().rows_per_slot() && expected <= span.acknowledged {
            let found = same_heads(heads, (row, expected), bytes)?;
            let (first, before) = (found.first()?, stripes.last());
            let continues = before.is_none_or(|before| {
                let (epoch, epoch_before) = (first.stripe.epoch, before.stripe.epoch);
                epoch == epoch_before || (first.stripe.kind == Kind::Void && epoch > epoch_before)
            });
            if !continues || !self.is_whole(heads, &found, bytes) {
                return None;
            }
            row = first.stripe.first_row + 1 + first.stripe.rows;
            expected.sub += 1;
            let closes = first.stripe.kind.closes_slot();
            stripes.extend(found.into_iter().next());
            if closes {
                break;
            }
        }
        Some(stripes)
    }

    /// One stripe of which every head is there.
    fn is_whole(&mut self, heads: &Heads<'_>, found: &[Head], bytes: &SlotBytes) -> bool {
        let Some(first) = found.first() else { return false };
        if first.stripe.kind.closes_slot() {
            let torn = |head: &Head| is_torn_behind(heads, head, bytes.of(head.piece.member));
            return !found.iter().any(torn);
        }
        let Some(codec) = self.codec else { return false };
        let bodies = found.iter().map(|head| body_in(head, bytes.of(head.piece.member)));
        let Some(bodies) = bodies.collect::<Option<Vec<_>>>() else { return false };
        let (data, on_disk) = bodies.split_at(usize::from(first.stripe.geometry.data_columns));
        let len = usize::from(first.stripe.rows) * HEAD_BYTES;
        let parity = self.parity.iter_mut().take(on_disk.len());
        let parity = parity.map(|body| body.get_mut(..len));
        let Some(mut parity) = parity.collect::<Option<Vec<_>>>() else { return false };
        let sums = protect(codec, address(&first.stripe), data, &mut parity);
        sums.iter().zip(found).all(|(sums, head)| is_sealed_as(sums, head))
            && parity.iter().zip(on_disk).all(|(right, on_disk)| **right == **on_disk)
    }

    /// Nothing is damaged, and yet the slot is not whole: members are away, or parity was computed
    /// wrongly when it was written.
    fn note_wrong_parity(&mut self, span: Span, bytes: &SlotBytes, report: &mut VerifyReport) {
        if self.codec.is_none() {
            return;
        }
        let shown = self.view.stripes.iter().filter(|it| it.stripe.stripe <= span.acknowledged);
        let complete: Vec<Vec<Head>> = shown
            .filter(|view| view.is_complete() && view.stripe.rows > 0)
            .filter_map(StripeView::heads)
            .collect();
        let reader = self.reader;
        for heads in complete {
            if !reader.with_heads(|reading| self.is_whole(reading, &heads, bytes)) {
                report.parity_wrong.extend(heads.first().map(|head| head.stripe.stripe));
            }
        }
    }
}

/// The heads in one row on all members, if they are of one identity and the stripe expected there.
fn same_heads(
    heads: &Heads<'_>,
    (row, expected): (u16, StripeId),
    bytes: &SlotBytes,
) -> Option<Vec<Head>> {
    let geometry = heads.membership().geometry_at(expected.sequence);
    let mut found: Vec<Head> = Vec::new();
    for column in 0..geometry.columns() {
        let member = geometry.member_of(expected.sequence, column);
        let head = heads.head_in(member, bytes.of(member), row, expected.sequence)?;
        let is_one = found.first().is_none_or(|first| first.cid == head.cid);
        if !is_one || head.stripe.stripe != expected {
            return None;
        }
        found.push(head);
    }
    // What members hold in their gaps does not say by itself what was sealed.
    let counting = found.iter().filter(|head| heads.counts(head)).count();
    (counting >= usize::from(geometry.data_columns)).then_some(found)
}

fn is_sealed_as(sums: &ColumnSums, head: &Head) -> bool {
    let sealed = head.stripe.manifest.get(usize::from(head.piece.column));
    sealed == Some(&sums.body_crc) && head.piece.row_crcs == sums.row_crcs
}
