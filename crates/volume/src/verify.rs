//! Reading everything that is acknowledged and checking every byte. Repairs nothing.

use core::ops::ControlFlow;

use format::head::{Kind, StripeId};

use crate::Reader;
use crate::reader::Span;
use crate::slot_view::{SlotBytes, SlotView, StripeView};

/// One place that is not as it was acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Stripe.
    pub stripe: StripeId,
    /// The member whose piece is damaged; `None` when no member has a readable head.
    pub member: Option<u8>,
    /// Row of its head within the slot.
    pub first_row: u16,
    /// Body rows that do not match; empty when the head itself is missing.
    pub rows: Vec<u16>,
    /// Byte offset of the stripe's slot on every member.
    pub slot_offset: u64,
    /// The other members give back what is damaged.
    pub repairable: bool,
}

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VerifyReport {
    /// Slots read.
    pub slots: u64,
    /// Stripes verified, by what they hold.
    pub data_stripes: u64,
    /// INDEX stripes.
    pub index_stripes: u64,
    /// All others.
    pub other_stripes: u64,
    /// Packets in the verified stripes, by their heads.
    pub packets: u64,
    /// Bytes read, of all members.
    pub bytes: u64,
    /// Stripes that the writer passed while they were waiting to be read.
    pub overwritten: u64,
    /// Stripes of which a piece is missing on a member that is absent or stale there, though all
    /// of its rows can be had.
    pub degraded: u64,
    /// Damage, in ring order.
    pub damage: Vec<Damage>,
}

/// Verifies the acknowledged part of the ring on every member; `progress` hears (bytes done, bytes
/// in all) and may stop it.
pub fn verify(
    reader: &Reader,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> VerifyReport {
    let mut report = VerifyReport::default();
    let Some(span) = reader.span() else { return report };
    let members = u64::try_from(reader.membership().present().count()).expect("at most 24");
    let slot_bytes = u64::from(reader.geometry().piece_bytes) * members;
    let total = (span.acknowledged.sequence + 1 - span.tail) * slot_bytes;
    let mut bytes = SlotBytes::default();
    for sequence in span.tail..=span.acknowledged.sequence {
        let view = reader.with_heads(|heads| {
            bytes.fill(heads, sequence);
            SlotView::walk(heads, sequence, span.acknowledged, &bytes)
        });
        report.take(reader, (sequence, span), &view);
        report.slots += 1;
        report.bytes += slot_bytes;
        if progress(report.bytes, total).is_break() {
            break;
        }
    }
    report
}

impl VerifyReport {
    fn take(&mut self, reader: &Reader, (sequence, span): (u64, Span), view: &SlotView) {
        let slot_offset = reader.geometry().slot_offset(sequence);
        let missing = |stripe| {
            let rows = Vec::new();
            Damage { stripe, member: None, first_row: 0, rows, slot_offset, repairable: false }
        };
        let shown = |view: &&StripeView| view.stripe.stripe <= span.acknowledged;
        let mut expected = StripeId { sequence, sub: 0 };
        if view.stripes.iter().take_while(shown).next().is_none() {
            if reader.has_passed(sequence) {
                self.overwritten += 1;
            } else {
                self.damage.push(missing(expected));
            }
            return;
        }
        for stripe in view.stripes.iter().take_while(shown) {
            let id = stripe.stripe.stripe;
            let lost = (expected.sub..id.sub).map(|sub| missing(StripeId { sequence, sub }));
            self.damage.extend(lost);
            match stripe.stripe.kind {
                Kind::Data => self.data_stripes += 1,
                Kind::Index => self.index_stripes += 1,
                _ => self.other_stripes += 1,
            }
            self.packets += stripe.stripe.totals.packets;
            self.take_pieces(reader, stripe, slot_offset);
            expected.sub = id.sub + 1;
        }
        // Every slot but the newest was closed before a later one was acknowledged.
        if !view.closed && sequence < span.acknowledged.sequence {
            self.damage.push(missing(expected));
        }
    }

    fn take_pieces(&mut self, reader: &Reader, view: &StripeView, slot_offset: u64) {
        let stripe = view.stripe.stripe;
        let repairable = view.is_recoverable();
        let membership = reader.membership();
        let expected = |member| membership.is_whole_at(member, stripe.sequence);
        let bad = view.pieces.iter().filter(|piece| !piece.is_whole());
        let damaged = bad.clone().filter(|piece| !repairable || expected(piece.member));
        self.damage.extend(damaged.map(|piece| Damage {
            stripe,
            member: Some(piece.member),
            first_row: view.stripe.first_row,
            rows: if piece.head.is_some() { piece.bad_rows.clone() } else { Vec::new() },
            slot_offset,
            repairable,
        }));
        let absent = bad.filter(|piece| !expected(piece.member)).count();
        self.degraded += u64::from(repairable && absent > 0);
    }
}
