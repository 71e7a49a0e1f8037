//! Stripes for which the indexer had no time, handed to it when it has.
//!
//! They are read back from the members once they are durable, and their sessions are tracked by
//! themselves: among those of the live ones their packets would come too late. What is still
//! waiting when its segment ends stays without rows, and is indexed by the query that needs it.
//!
//! However long the indexer's thread hangs, the lists of such stripes keep within a bound: behind
//! as many as fit, all further ones become one range, of which only the sum is known. A range is
//! not read back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use format::head::StripeId;
use indexer::{RunKind, Stripe, Times};

use crate::index_queue::SealedStripe;
use crate::read_back::{Found, ReadBack, Slot};

/// Stripes or ranges in a list. Three lists of at most so many take 768 KiB.
const SKIPPED_MAX: usize = 4096;
const _: () = assert!(3 * SKIPPED_MAX * size_of::<Skipped>() <= 1 << 20);

/// A stripe that was not handed to the indexer, or a range of such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Skipped {
    /// The first one.
    pub(crate) stripe: StripeId,
    /// The last one of a range, between which others may have been handed over.
    pub(crate) through: Option<StripeId>,
    pub(crate) packets: u64,
    /// When they came.
    pub(crate) times: Times,
}

impl Skipped {
    pub(crate) fn new(stripe: StripeId, packets: u64, times: Times) -> Self {
        Self { stripe, through: None, packets, times }
    }

    pub(crate) fn of(sealed: &SealedStripe) -> Self {
        Self::new(sealed.stripe, sealed.packets, sealed.times)
    }

    /// Makes it a range that has the other one, too.
    fn merge(&mut self, other: &Self) {
        let last = |skipped: &Self| skipped.through.unwrap_or(skipped.stripe);
        self.through = Some(last(self).max(last(other)));
        self.stripe = self.stripe.min(other.stripe);
        self.packets = self.packets.saturating_add(other.packets);
        self.times.add(other.times);
    }
}

/// Stripes that were not handed to the indexer, in order: at most 4096 entries, however many.
#[derive(Debug, Default)]
pub(crate) struct SkipList(VecDeque<Skipped>);

impl SkipList {
    /// Puts it into its place. Where the list is full, its last two become one range.
    pub(crate) fn push(&mut self, skipped: Skipped) {
        let is_full = self.0.len() >= SKIPPED_MAX;
        let last = if is_full { self.0.pop_back() } else { None };
        if let (Some(range), Some(last)) = (self.0.back_mut(), last) {
            range.merge(&last);
        }
        // Nearly always that is behind all others.
        let place = self.0.partition_point(|other| other.stripe < skipped.stripe);
        self.0.insert(place, skipped);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes out what a segment has that ends with the stripe `last`, and counts its packets.
    ///
    /// How many packets of a range lie on which side of `last` is not known: all of them are
    /// counted, and what is behind `last` stays with all of them for the next segment. So a count
    /// may be too high and is never too low: no segment without some rows is called complete.
    fn end_segment(&mut self, last: StripeId, left: &mut Left) {
        self.0.retain_mut(|skipped| {
            if skipped.stripe > last {
                return true;
            }
            left.add(skipped);
            skipped.stripe = last.after();
            skipped.through.is_some_and(|through| through > last)
        });
    }
}

/// How the ring writer names them.
pub(crate) type Skips = Arc<Mutex<SkipList>>;

/// Stripes that wait, in order.
#[derive(Debug)]
pub(crate) struct Late {
    skips: Skips,
    waiting: SkipList,
    /// Those that cannot be read back, of segments that have not ended.
    lost: SkipList,
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
    /// It cannot be read, or is one of many of which only the sum is known, and stays without rows.
    Unreadable,
    /// None is there that could be read now.
    NotNow,
}

impl Late {
    pub(crate) fn new(skips: Skips) -> Self {
        Self { skips, waiting: SkipList::default(), lost: SkipList::default() }
    }

    /// Whether any stripe waits to be read back.
    pub(crate) fn is_waiting(&mut self) -> bool {
        self.take_skips();
        !self.waiting.0.is_empty()
    }

    /// The oldest stripe without rows of a segment that has not ended, waiting or unreadable.
    pub(crate) fn first(&mut self) -> Option<StripeId> {
        self.take_skips();
        let lists = [&self.waiting, &self.lost];
        lists.into_iter().filter_map(|list| Some(list.0.front()?.stripe)).min()
    }

    fn take_skips(&mut self) {
        let mut skips = stage::lock(&self.skips);
        for skipped in skips.0.drain(..) {
            self.waiting.push(skipped);
        }
    }

    /// A stripe was given back.
    pub(crate) fn skip(&mut self, stripe: &Stripe) {
        let Stripe { id, packets, times, .. } = *stripe;
        // Behind those that were skipped before it, in front of later ones.
        self.waiting.push(Skipped::new(id, packets, times));
    }

    /// Reads the oldest stripe that waits, if it is durable.
    pub(crate) fn next(&mut self, acknowledged: StripeId, from: &mut ReadBack<'_>) -> Step {
        let Some(&skipped) = self.waiting.0.front() else { return Step::NotNow };
        if skipped.through.is_some() {
            return self.lose_first();
        }
        if skipped.stripe > acknowledged {
            return Step::NotNow;
        }
        let slot = match from.slot(skipped.stripe) {
            Slot::Read(stripes, _) => stripes,
            Slot::NotNow => return Step::NotNow,
        };
        let is_it = |found: &&Found| found.id == skipped.stripe && found.is_whole;
        let Some(found) = slot.iter().find(is_it) else { return self.lose_first() };
        self.waiting.0.pop_front();
        Step::Read(Box::new(Stripe { is_late: true, ..found.to_hand_over(RunKind::Live) }))
    }

    fn lose_first(&mut self) -> Step {
        if let Some(skipped) = self.waiting.0.pop_front() {
            self.lost.push(skipped);
        }
        Step::Unreadable
    }

    /// The segment ends with the stripe `last`: gives the packets that have no rows, or more of
    /// them, where a range goes on behind it. Later stripes wait for the next segment.
    pub(crate) fn end_segment(&mut self, last: StripeId) -> Left {
        let mut left = Left::NONE;
        self.take_skips();
        self.waiting.end_segment(last, &mut left);
        self.lost.end_segment(last, &mut left);
        left
    }
}

#[cfg(test)]
mod tests;
