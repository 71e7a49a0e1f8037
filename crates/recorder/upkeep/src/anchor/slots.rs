//! The stripes of a slot as an anchor lists them.

use evidence::{Body, Listed};
use format::head::{Head, Kind};
use units::number::to_u64;
use units::{Epoch, Sequence, Timestamp};
use volume::{Reader, Slot, StripeInSlot};

/// A record, and what its head says besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) listed: Listed,
    pub(super) epoch: Epoch,
    pub(super) sealed: Timestamp,
    /// Nothing is left of the slot: it was erased.
    pub(super) is_erased: bool,
}

/// How a slot could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
    Read,
    /// Some of it has no readable head.
    Damaged,
    /// The ring has passed it.
    Overwritten,
}

/// Reads slots one after the other into the same memory.
pub(super) struct Slots<'r> {
    reader: &'r Reader,
    memory: Vec<Vec<u8>>,
}

impl<'r> Slots<'r> {
    pub(super) fn new(reader: &'r Reader) -> Self {
        Self { reader, memory: Vec::new() }
    }

    /// Bytes of the data columns of so many slots.
    pub(super) fn bytes(&self, slots: u64) -> u64 {
        let columns = u64::from(self.reader.geometry().data_columns);
        slots.saturating_mul(columns).saturating_mul(to_u64(self.reader.piece_bytes()))
    }

    /// The acknowledged stripes of a slot, by stripe and column, with hashes of their bodies or
    /// without.
    pub(super) fn read(&mut self, sequence: Sequence, contents: bool) -> (Vec<Found>, SlotState) {
        let acknowledged = self.reader.span().map(|span| span.acknowledged);
        if !contents && let Some(heads) = self.reader.heads(sequence) {
            let shown = heads.iter().filter(|head| Some(head.stripe.stripe) <= acknowledged);
            return (shown.map(|head| found(head, 0, Body::None)).collect(), SlotState::Read);
        }
        let columns = self.reader.membership().geometry_at(sequence).data_columns;
        let columns: Vec<u8> = (0..if contents { columns } else { 1 }).collect();
        self.memory.resize_with(columns.len(), Vec::new);
        let slots = self.reader.sealed_slots(sequence, &columns, &mut self.memory);
        let (mut all, mut state) = (Vec::new(), SlotState::Read);
        for ((column, slot), memory) in columns.iter().zip(slots).zip(&self.memory) {
            let slot = match slot {
                Ok(slot) => slot,
                Err(volume::Error::Overwritten(_)) => return (Vec::new(), SlotState::Overwritten),
                Err(_) => {
                    state = SlotState::Damaged;
                    continue;
                }
            };
            let is_newest = acknowledged.is_some_and(|newest| newest.sequence == sequence);
            if has_holes(&slot, is_newest) {
                state = SlotState::Damaged;
            }
            let with_body = |stripe: &StripeInSlot| {
                let body = match (contents, stripe.head.stripe.rows, &*stripe.bad_rows) {
                    (false, ..) | (_, 0, _) => Body::None,
                    (true, _, []) => {
                        let body = Reader::body(&stripe.head, memory);
                        Body::Hash(*blake3::hash(body).as_bytes())
                    }
                    (true, ..) => Body::Unreadable,
                };
                found(&stripe.head, *column, body)
            };
            // What has no body is listed once.
            let listed = slot.stripes.iter().filter(|it| *column == 0 || it.head.stripe.rows > 0);
            all.extend(listed.map(with_body));
        }
        all.sort_by_key(|found| (found.listed.stripe, found.listed.column));
        (all, state)
    }
}

/// Stripes of the slot have no readable head.
fn has_holes(slot: &Slot, is_newest: bool) -> bool {
    let is_open = !slot.closed && !is_newest;
    is_open || slot.stripes.iter().any(|stripe| stripe.behind_damage)
}

fn found(head: &Head, column: u8, body: Body) -> Found {
    let stripe = &head.stripe;
    Found {
        listed: Listed { stripe: stripe.stripe, column, cid: head.cid, body },
        epoch: stripe.epoch,
        sealed: stripe.realtime,
        is_erased: stripe.kind == Kind::Void && stripe.stripe.sub == 0,
    }
}
