//! What checking a slot says: numbers, and every place that is not as it was acknowledged. Repairs
//! nothing; `scrub` drives it.

use core::ops::Range;

use format::checksum::body_crc;
use format::head::{HEAD_BYTES, Kind, StripeHead, StripeId};
use schemars::JsonSchema;
use serde::Serialize;
use units::{MemberId, Sequence};
use volume::slot_view::{SlotBytes, SlotView, StripeView};
use volume::{GivenUp, Reader, Span};

/// One place that is not as it was acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The stripe.
    pub stripe: StripeId,
    /// The member whose piece is damaged; `None` when no member has a readable head.
    pub member: Option<MemberId>,
    /// Row of its head within the slot.
    pub first_row: u16,
    /// Body rows that do not match; empty when the head itself is missing.
    pub rows: Vec<u16>,
    /// Byte offset of the stripe's slot on every member.
    pub slot_offset: u64,
    /// The other members give back what is damaged.
    pub repairable: bool,
    /// Of a stripe of which no member has the head: what its body is, as far as the head behind it
    /// says.
    pub body: Option<LostBody>,
}

/// The body of a stripe that has lost its head, by the checksums in the head behind it. It is not
/// given out: what it holds, and of when, stood in its own head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LostBody {
    /// As it was sealed, on every member at hand.
    Whole,
    /// On some member it is not what was sealed: torn, rotten or changed.
    Altered,
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct ReadBack {
    /// Slots read.
    pub slots: u64,
    /// Bytes read, of all members.
    pub bytes: u64,
    /// Stripes verified, by what they hold.
    pub data_stripes: u64,
    /// INDEX stripes.
    pub index_stripes: u64,
    /// All other stripes.
    pub other_stripes: u64,
}

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VerifyReport {
    /// What was read.
    pub read: ReadBack,
    /// Packets in the verified stripes, by their heads.
    pub packets: u64,
    /// Stripes that the writer passed while they were waiting to be read.
    pub overwritten: u64,
    /// Stripes of which a piece is missing on a member that is absent or stale there, though all
    /// of its rows can be had.
    pub degraded: u64,
    /// Stripes whose parity does not follow from their data, though all checksums match: it was
    /// computed wrongly when it was written, and only the data can be trusted.
    pub parity_wrong: Vec<StripeId>,
    /// Members that failed too often or for too long, and were not read to the end: what lies on
    /// them was not checked, and is no damage.
    pub given_up: Vec<GivenUp>,
    /// Damage, in ring order.
    pub damage: Vec<Damage>,
}

impl VerifyReport {
    /// Counts a stripe.
    pub(crate) fn count(&mut self, stripe: &StripeHead) {
        match stripe.kind {
            Kind::Data => self.read.data_stripes += 1,
            Kind::Index => self.read.index_stripes += 1,
            _ => self.read.other_stripes += 1,
        }
        self.packets = self.packets.saturating_add(stripe.totals.packets);
    }

    /// Counts the stripes of a slot.
    pub(crate) fn take(&mut self, reader: &Reader, span: Span, view: &SlotView) {
        for stripe in view.stripes.iter().filter(|view| view.stripe.stripe <= span.acknowledged) {
            self.count(&stripe.stripe);
            let sequence = stripe.stripe.stripe.sequence;
            let is_absent = |member| !reader.shows(member, sequence);
            let mut bad = stripe.pieces.iter().filter(|piece| !piece.is_whole());
            let degraded = stripe.is_recoverable() && bad.any(|piece| is_absent(piece.member));
            self.degraded += u64::from(degraded);
        }
    }

    /// What is damaged in the slot of `sequence`.
    pub(crate) fn damage_in(
        reader: &Reader,
        (sequence, span): (Sequence, Span),
        (view, bytes): (&SlotView, &SlotBytes),
    ) -> Vec<Damage> {
        let slot_offset = reader.geometry().slot_offset(sequence);
        let missing = |stripe, body| Damage {
            stripe,
            member: None,
            first_row: 0,
            rows: Vec::new(),
            slot_offset,
            repairable: false,
            body,
        };
        // The first row behind the stripes so far: the lost head's.
        let mut row = 0;
        let shown = |view: &&StripeView| view.stripe.stripe <= span.acknowledged;
        let mut expected = StripeId { sequence, sub: 0 };
        let mut damage = Vec::new();
        for stripe in view.stripes.iter().take_while(shown) {
            let id = stripe.stripe.stripe;
            let rows = row..stripe.stripe.first_row;
            damage.extend((expected.sub..id.sub).map(|sub| {
                let lost = StripeId { sequence, sub };
                missing(lost, lost_body(reader, (lost, rows.clone()), &stripe.stripe, bytes))
            }));
            damage.extend(damage_of(reader, stripe, slot_offset));
            expected.sub = id.sub + 1;
            row = stripe.stripe.first_row + 1 + stripe.stripe.rows;
        }
        // Every slot but the newest was closed before a later one was acknowledged.
        let is_open = !view.closed && sequence < span.acknowledged.sequence;
        if is_open || expected.sub == 0 {
            let behind = (sequence < span.acknowledged.sequence).then(|| reader.head(sequence + 1));
            let rows = row..reader.geometry().rows_per_slot();
            let body = behind
                .flatten()
                .and_then(|head| lost_body(reader, (expected, rows), &head.stripe, bytes));
            damage.push(missing(expected, body));
        }
        damage
    }
}

/// The pieces of a stripe that are not as they were acknowledged. What a member missed while it was
/// away is no damage, as long as the others have it.
fn damage_of(reader: &Reader, view: &StripeView, slot_offset: u64) -> impl Iterator<Item = Damage> {
    let stripe = view.stripe.stripe;
    let repairable = view.is_recoverable();
    let expected = move |member| reader.shows(member, stripe.sequence);
    let bad = view.pieces.iter().filter(|piece| !piece.is_whole());
    let damaged = bad.filter(move |piece| !repairable || expected(piece.member));
    damaged.map(move |piece| Damage {
        stripe,
        member: Some(piece.member),
        first_row: view.stripe.first_row,
        rows: if piece.head.is_some() { piece.bad_rows.clone() } else { Vec::new() },
        slot_offset,
        repairable,
        body: None,
    })
}

/// What the head behind a stripe whose head is lost says of its body, which takes all but the first
/// of `rows`. Nothing where that head names another stripe as the one before it.
fn lost_body(
    reader: &Reader,
    (lost, rows): (StripeId, Range<u16>),
    behind: &StripeHead,
    bytes: &SlotBytes,
) -> Option<LostBody> {
    if behind.previous != lost || rows.is_empty() {
        return None;
    }
    let geometry = reader.membership().geometry_at(lost.sequence);
    let body = usize::from(rows.start + 1) * HEAD_BYTES..usize::from(rows.end) * HEAD_BYTES;
    let mut is_known = false;
    for (column, sealed) in (0..geometry.columns()).zip(&behind.previous_manifest) {
        let member = geometry.member_of(lost.sequence, column);
        if !reader.shows(member, lost.sequence) {
            continue;
        }
        if body_crc(bytes.of(member).get(body.clone())?) != *sealed {
            return Some(LostBody::Altered);
        }
        is_known = true;
    }
    is_known.then_some(LostBody::Whole)
}
