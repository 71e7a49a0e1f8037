//! What is suspected of having ended workers: stripes, and segments that were being made.
//!
//! A worker that ends has at most one stripe that it was working on, the first without an answer,
//! and beside it segments that other threads of it were encoding. Whatever is suspected is tried
//! alone with the next worker, so that the second time no other stripe can be to blame.

use std::collections::{BTreeMap, BTreeSet};

use format::head::StripeId;

/// Weights of what a stripe is suspected for: a worker that ended by itself while it had it, and
/// one that another process killed.
const STRIKE_OWN: u8 = 4;
const STRIKE_KILLED: u8 = 1;
/// From here on it is poison.
const POISON: u8 = 2 * STRIKE_OWN;
/// Suspects that are remembered, of either kind.
const SUSPECTS_MAX: usize = 1024;
/// Poison that is remembered: it is made out once, and not again when its stretch is made anew.
const POISON_MAX: usize = 65_536;
/// So many stripes in a row that are poison, and no answer between them: then it is rather the
/// worker that fails, and the pauses between workers grow on.
const POISON_IN_A_ROW: u32 = 64;

/// What workers ended with.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    strikes: BTreeMap<StripeId, u8>,
    poison: BTreeSet<StripeId>,
    /// First stripes of segments.
    segments: BTreeSet<StripeId>,
    /// Poison since the last answer.
    in_a_row: u32,
}

impl Suspects {
    /// A worker ended while it had this stripe; true where that made the stripe poison.
    pub(crate) fn stripe(&mut self, id: StripeId, by_itself: bool) -> bool {
        let weight = if by_itself { STRIKE_OWN } else { STRIKE_KILLED };
        if self.strikes.len() >= SUSPECTS_MAX && !self.strikes.contains_key(&id) {
            self.strikes.pop_first();
        }
        let strikes = self.strikes.entry(id).or_default();
        *strikes = strikes.saturating_add(weight);
        if *strikes < POISON {
            return false;
        }
        self.strikes.remove(&id);
        if self.poison.len() >= POISON_MAX {
            // What the ring goes over first.
            self.poison.pop_first();
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.poison.insert(id)
    }

    /// A worker ended while it encoded the segment that begins with this stripe.
    pub(crate) fn segment(&mut self, first: StripeId) {
        if self.segments.len() >= SUSPECTS_MAX {
            self.segments.pop_first();
        }
        self.segments.insert(first);
    }

    /// A worker answered a stripe.
    pub(crate) fn clear_stripe(&mut self, id: StripeId) {
        self.strikes.remove(&id);
        self.in_a_row = 0;
    }

    /// A worker has made a segment, or said why not.
    pub(crate) fn clear_segment(&mut self, first: StripeId) {
        self.segments.remove(&first);
        self.in_a_row = 0;
    }

    pub(crate) fn has_stripe(&self, id: StripeId) -> bool {
        self.strikes.contains_key(&id)
    }

    pub(crate) fn has_segment(&self, first: StripeId) -> bool {
        self.segments.contains(&first)
    }

    pub(crate) fn is_poison(&self, id: StripeId) -> bool {
        self.poison.contains(&id)
    }

    /// It is rather stripes that end workers than workers that fail at anything.
    pub(crate) fn are_to_blame(&self) -> bool {
        self.in_a_row < POISON_IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use super::*;

    fn id(sequence: u64) -> StripeId {
        StripeId { sequence: Sequence(sequence), sub: 0 }
    }

    #[test]
    fn a_stripe_is_poison_after_two_ends_by_itself_or_eight_kills() {
        let mut suspects = Suspects::default();
        assert!(!suspects.stripe(id(1), true) && suspects.has_stripe(id(1)));
        assert!(suspects.stripe(id(1), true) && suspects.is_poison(id(1)));
        assert!(!suspects.has_stripe(id(1)), "it is not tried again");
        assert!((0..7).all(|_| !suspects.stripe(id(2), false)));
        assert!(suspects.stripe(id(2), false) && suspects.is_poison(id(2)));
        assert!(!suspects.stripe(id(3), true));
        suspects.clear_stripe(id(3));
        assert!(!suspects.stripe(id(3), true), "an answer clears it");
    }

    #[test]
    fn memory_is_bounded_and_poison_outlives_suspects() {
        let mut suspects = Suspects::default();
        for sequence in 0..100_000 {
            suspects.stripe(id(sequence), true);
            suspects.stripe(id(sequence), true);
            suspects.stripe(id(200_000 + sequence), true);
            suspects.segment(id(sequence));
        }
        assert_eq!((suspects.strikes.len(), suspects.segments.len()), (SUSPECTS_MAX, SUSPECTS_MAX));
        assert_eq!(suspects.poison.len(), POISON_MAX);
        assert!(suspects.is_poison(id(99_999)) && !suspects.is_poison(id(0)));
    }

    #[test]
    fn when_everything_ends_workers_the_worker_is_to_blame() {
        let mut suspects = Suspects::default();
        for sequence in 0..u64::from(POISON_IN_A_ROW) {
            assert!(suspects.are_to_blame());
            suspects.stripe(id(sequence), true);
            suspects.stripe(id(sequence), true);
        }
        assert!(!suspects.are_to_blame());
        suspects.clear_stripe(id(1000));
        assert!(suspects.are_to_blame());
    }
}
