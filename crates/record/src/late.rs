//! Stripes for which the indexer had no time, handed to it when it has.
//!
//! They are read back from the members once they are durable, and their sessions are told apart by
//! themselves: among those of the live ones their packets would come too late. What is still
//! waiting when its segment ends stays without rows, and is indexed by whoever asks for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use format::head::StripeId;
use indexer::{Lane, Stripe, Times};

use crate::read_back::{Found, ReadBack, Slot};
use crate::ring::SealedStripe;

/// A stripe that was not handed to the indexer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Skipped {
    pub(crate) stripe: StripeId,
    pub(crate) packets: u64,
    /// When they came.
    pub(crate) times: Times,
}

impl Skipped {
    pub(crate) fn of(sealed: &SealedStripe) -> Self {
        let &SealedStripe { stripe, packets, times, .. } = sealed;
        Self { stripe, packets, times }
    }
}

/// How the ring writer tells of them, in order.
pub(crate) type Skips = Arc<Mutex<Vec<Skipped>>>;

/// Stripes that wait, in order.
#[derive(Debug)]
pub(crate) struct Late {
    skips: Skips,
    waiting: VecDeque<Skipped>,
    /// Packets of the segment under way that stay without rows.
    left: Left,
}

/// Packets that stay without rows, and when they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Left {
    pub(crate) packets: u64,
    pub(crate) times: Times,
}

impl Left {
    pub(crate) const NONE: Self = Self { packets: 0, times: Times::NONE };

    fn add(&mut self, skipped: &Skipped) {
        self.packets = self.packets.saturating_add(skipped.packets);
        self.times.add(skipped.times);
    }
}

/// What became of the stripe that waited longest.
#[derive(Debug)]
pub(crate) enum Step {
    /// It can be handed over.
    Read(Box<Stripe>),
    /// It cannot be read, and stays without rows.
    Unreadable,
    /// None is there that could be read now.
    NotNow,
}

impl Late {
    pub(crate) fn new(skips: Skips) -> Self {
        Self { skips, waiting: VecDeque::new(), left: Left::NONE }
    }

    /// The oldest stripe that waits.
    pub(crate) fn first(&mut self) -> Option<StripeId> {
        let mut skips = self.skips.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.extend(skips.drain(..));
        drop(skips);
        self.waiting.front().map(|skipped| skipped.stripe)
    }

    /// A stripe was given back.
    pub(crate) fn skip(&mut self, stripe: &Stripe) {
        let Stripe { id, packets, times, .. } = *stripe;
        let skipped = Skipped { stripe: id, packets, times };
        // Behind those that were skipped before it, in front of later ones.
        let place = self.waiting.partition_point(|other| other.stripe < skipped.stripe);
        self.waiting.insert(place, skipped);
    }

    /// Reads the oldest stripe that waits, if it is durable.
    pub(crate) fn next(&mut self, acknowledged: StripeId, from: &mut ReadBack<'_>) -> Step {
        let Some(&skipped) = self.waiting.front() else { return Step::NotNow };
        if skipped.stripe > acknowledged {
            return Step::NotNow;
        }
        let slot = match from.slot(skipped.stripe) {
            Slot::Read(stripes) => stripes,
            Slot::NotNow => return Step::NotNow,
        };
        self.waiting.pop_front();
        let is_it = |found: &&Found| found.id == skipped.stripe && found.is_whole;
        let Some(found) = slot.iter().find(is_it) else {
            self.left.add(&skipped);
            return Step::Unreadable;
        };
        Step::Read(Box::new(Stripe { is_late: true, ..found.to_hand_over(Lane::Live) }))
    }

    /// The segment ends with the stripe `last`: gives the packets that have no rows. Later stripes
    /// wait for the next one.
    pub(crate) fn end_segment(&mut self, last: StripeId) -> Left {
        let mut left = core::mem::replace(&mut self.left, Left::NONE);
        while let Some(skipped) = self.waiting.pop_front_if(|skipped| skipped.stripe <= last) {
            left.add(&skipped);
        }
        left
    }
}

#[cfg(test)]
mod tests;
