//! The pieces that packets were taken from: what each gave, and what its head says of the clock.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use evidence::{ClockSteps, ClockUse, TimesBy};
use format::head::{Head, StripeId};
use format::session_row::PieceId;
use manifest::PieceRead;
use units::Epoch;

use crate::walk::body_crc_of;

/// Pieces so far, and what the one under way has given.
#[derive(Default)]
pub(crate) struct ReadPieces {
    done: Vec<PieceRead>,
    clocks: BTreeMap<ClockKey, ClockUse>,
    packets: u64,
    /// The blocks of those, as they lie in the piece.
    blocks: Vec<u8>,
}

type ClockKey = (Epoch, TimesBy, Option<bool>);

impl ReadPieces {
    /// A packet of the piece under way goes to an output.
    pub(crate) fn gives(&mut self, block: &[u8]) {
        self.packets += 1;
        self.blocks.extend_from_slice(block);
    }

    /// The piece under way is done.
    pub(crate) fn settle(&mut self, head: &Head) -> PieceId {
        let StripeId { sequence, sub } = head.stripe.stripe;
        let piece = PieceId { sequence, sub, column: head.piece.column };
        let packets = core::mem::take(&mut self.packets);
        let blake3 = *blake3::hash(&self.blocks).as_bytes();
        self.blocks.clear();
        let (cid, body_crc) = (head.cid, body_crc_of(head));
        self.done.push(PieceRead { piece, body_crc, cid, packets, blake3 });
        self.add_clock(head);
        piece
    }

    fn add_clock(&mut self, head: &Head) {
        let one = clock_of(head);
        let key = (one.epoch, one.times_by, one.is_synchronised);
        let Some(known) = self.clocks.get_mut(&key) else {
            self.clocks.insert(key, one);
            return;
        };
        let set = known.set.zip(one.set).map(|(known, ClockSteps { steps: one, .. })| {
            let first = (known.steps - known.steps_between).min(one);
            let steps = known.steps.max(one);
            ClockSteps { steps, steps_between: steps - first }
        });
        let (from, to) = one.times;
        *known = ClockUse {
            pieces: known.pieces + 1,
            times: (known.times.0.min(from), known.times.1.max(to)),
            estimated_error_us: known.estimated_error_us.max(one.estimated_error_us),
            largest_error_us: known.largest_error_us.max(one.largest_error_us),
            set,
            ..*known
        };
    }

    /// What was read is not remembered.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// In the order of the ring; clocks of the newest recording first.
    pub(crate) fn finish(mut self) -> (Vec<PieceRead>, Vec<ClockUse>) {
        self.done.sort_unstable_by_key(|read| read.piece);
        let mut clocks: Vec<ClockUse> = self.clocks.into_values().collect();
        clocks.sort_by_key(|clock| Reverse(clock.epoch));
        (self.done, clocks)
    }
}

/// What the head of one piece says.
fn clock_of(head: &Head) -> ClockUse {
    let stripe = &head.stripe;
    let recorded = stripe.recorded.as_ref();
    let said = recorded.and_then(|recorded| recorded.clock);
    let times_by = match (recorded.map(|recorded| recorded.is_live), said) {
        (Some(false), _) => TimesBy::Files,
        (_, Some(said)) => match (said.of_kernel, said.of_adapter) {
            (true, true) => TimesBy::Both,
            (false, true) => TimesBy::Adapter,
            (true, false) => TimesBy::Kernel,
            (false, false) => TimesBy::Unsaid,
        },
        (_, None) => TimesBy::Unsaid,
    };
    // Only a recorder that took packets itself has looked.
    let is_looked_at = !matches!(times_by, TimesBy::Files | TimesBy::Unsaid);
    let state = said.and_then(|said| said.state);
    ClockUse {
        epoch: stripe.epoch,
        times_by,
        is_synchronised: state.map(|state| state.is_synchronised),
        pieces: 1,
        times: (stripe.time_min, stripe.time_max),
        estimated_error_us: state.map(|state| state.estimated_error_us),
        largest_error_us: state.map(|state| state.largest_error_us),
        set: is_looked_at
            .then(|| ClockSteps { steps: said.map_or(0, |said| said.steps), steps_between: 0 }),
    }
}
