//! Reading everything that is acknowledged and checking every byte. Repairs nothing.

use core::ops::ControlFlow;

use format::head::{Kind, StripeId};

use crate::{Error, Reader};

/// One place that is not as it was acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Stripe.
    pub stripe: StripeId,
    /// Body rows that do not match; empty when the head itself is missing.
    pub rows: Vec<u16>,
    /// Byte offset of the stripe's slot on the member.
    pub slot_offset: u64,
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
    /// Bytes read.
    pub bytes: u64,
    /// Stripes that the writer passed while they were waiting to be read.
    pub overwritten: u64,
    /// Damage, in ring order.
    pub damage: Vec<Damage>,
}

/// Verifies the acknowledged part of the ring; `progress` hears (bytes done, bytes in all) and may
/// stop it.
pub fn verify(
    reader: &Reader,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> VerifyReport {
    let mut report = VerifyReport::default();
    let Some(span) = reader.span() else { return report };
    let piece = u64::from(reader.geometry().piece_bytes);
    let total = (span.acknowledged.sequence + 1 - span.tail) * piece;
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in span.tail..=span.acknowledged.sequence {
        verify_slot(reader, sequence, &mut buffer, &mut report);
        report.slots += 1;
        report.bytes += piece;
        if progress(report.bytes, total).is_break() {
            break;
        }
    }
    report
}

fn verify_slot(reader: &Reader, sequence: u64, buffer: &mut [u8], report: &mut VerifyReport) {
    let slot_offset = reader.geometry().slot_offset(sequence);
    let missing = |stripe| Damage { stripe, rows: Vec::new(), slot_offset };
    let slot = match reader.slot(sequence, buffer) {
        Ok(slot) => slot,
        Err(Error::Overwritten(_)) => {
            report.overwritten += 1;
            return;
        }
        Err(_) => {
            report.damage.push(missing(StripeId { sequence, sub: 0 }));
            return;
        }
    };
    let mut expected = StripeId { sequence, sub: 0 };
    for stripe in &slot.stripes {
        let head = &stripe.head.stripe;
        report
            .damage
            .extend((expected.sub..head.stripe.sub).map(|sub| missing(StripeId { sequence, sub })));
        match head.kind {
            Kind::Data => report.data_stripes += 1,
            Kind::Index => report.index_stripes += 1,
            _ => report.other_stripes += 1,
        }
        report.packets += head.totals.packets;
        if !stripe.bad_rows.is_empty() {
            let rows = stripe.bad_rows.clone();
            report.damage.push(Damage { stripe: head.stripe, rows, slot_offset });
        }
        expected.sub = head.stripe.sub + 1;
    }
    // Every slot but the newest was closed before a later one was acknowledged.
    let newest = reader.span().map(|span| span.acknowledged.sequence);
    if !slot.closed && newest.is_some_and(|newest| sequence < newest) {
        report.damage.push(missing(expected));
    }
}
