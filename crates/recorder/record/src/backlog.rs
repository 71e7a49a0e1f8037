//! Stretches of stripes that were left without an index, by an earlier recording that crashed or
//! by an indexer that died: made into segments of their own while there is time.

use std::collections::{BTreeMap, VecDeque};

use format::head::StripeId;
use indexer::{Closing, RunKind, Stripe, Times};
use units::{Epoch, Sequence};
use volume::Reader;

use crate::read_back::{Found, ReadBack, Slot};
use crate::segment::OpenSegment;

/// Stretches that are remembered; older ones are left to the queries that need them.
const STRETCHES_MAX: usize = 256;
/// Segments of a stretch that could not be made, before it is left without rows for good.
const FAILURES_MAX: u8 = 2;
/// A stretch that an earlier recording left without an index is indexed when the volume is opened,
/// unless it is longer than this: then it stays to be indexed when asked for.
const CATCH_UP_BYTES_MAX: u64 = 4 << 30;

/// Stripes that shall get a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    pub(crate) first: StripeId,
    pub(crate) last: StripeId,
    /// Opening of the volume that wrote the first of them.
    pub(crate) epoch: Epoch,
    /// Packets in them, and when they came, as far as that is known.
    pub(crate) packets: u64,
    pub(crate) times: Times,
    /// They count as unindexed so far.
    pub(crate) is_counted: bool,
    /// Shall have no rows: making its segment failed too often.
    pub(crate) is_given_up: bool,
}

impl Stretch {
    /// All of a segment that was lost: its packets count as unindexed.
    pub(crate) fn of(open: &OpenSegment) -> Self {
        let OpenSegment { first, last, epoch, packets, times, .. } = *open;
        Self { first, last, epoch, packets, times, is_counted: true, is_given_up: false }
    }
}

/// What the next step is.
#[derive(Debug)]
pub(crate) enum Step {
    /// A stripe of the first stretch can be handed over.
    Stripe(Box<Stripe>),
    /// All stripes of the first stretch were handed over.
    End,
    /// The first stretch shall have a segment without rows.
    GiveUp(Stretch),
    /// Nothing can be done now.
    NotNow,
}

/// The stretches, and how far the first one is.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    stretches: VecDeque<Stretch>,
    /// The slot that is read next, while the first stretch is under way.
    at: Option<Sequence>,
    /// Stripes that were read and not handed over.
    read: VecDeque<Stripe>,
    /// Parts of slots that could not be read.
    unreadable: u64,
    /// How often the segment that begins here could not be made.
    failures: BTreeMap<StripeId, u8>,
}

impl Backlog {
    /// Stripes that shall get a segment when there is time.
    pub(crate) fn add(&mut self, stretch: Stretch) {
        self.stretches.push_back(stretch);
        if self.stretches.len() > STRETCHES_MAX {
            // Not the one that may be under way.
            self.stretches.remove(1);
        }
    }

    /// The data stripes behind the newest segment, which ends with `indexed`: an earlier recording
    /// left them without.
    pub(crate) fn catch_up(&mut self, reader: &Reader, indexed: Option<StripeId>, epoch: Epoch) {
        let Some(span) = reader.span() else { return };
        let tail = StripeId { sequence: span.tail, sub: 0 };
        let (first, last) = (indexed.map_or(tail, StripeId::after).max(tail), span.acknowledged);
        let slots = last.sequence.since(first.sequence);
        let bytes = slots.saturating_mul(reader.geometry().piece_bytes.into());
        if bytes <= CATCH_UP_BYTES_MAX && first <= last {
            let (packets, times, is_counted, is_given_up) = (0, Times::NONE, false, false);
            self.add(Stretch { first, last, epoch, packets, times, is_counted, is_given_up });
        }
    }

    /// Parts of slots that could not be read, so far.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// A segment has the first stretch up to this stripe, if it is one of its own.
    pub(crate) fn closed(&mut self, through: StripeId) {
        if let Some(stretch) = self.stretches.front_mut()
            && (stretch.first..=stretch.last).contains(&through)
        {
            stretch.first = through.after();
        }
    }

    /// A segment says that it has every packet from its first stripe to its last. So the stretch
    /// ends in front of what cannot be read, and another one begins behind it: a query reads what
    /// is left in between, and names the damage.
    fn split(&mut self, damaged: StripeId, behind: StripeId) {
        let Some(stretch) = self.stretches.front_mut() else { return };
        let rest = Stretch { first: behind, ..stretch.clone() };
        stretch.last = damaged.before();
        self.unreadable += 1;
        if rest.first <= rest.last {
            self.stretches.insert(1, rest);
        }
    }

    /// What was done for the first stretch from this stripe on is lost.
    pub(crate) fn again(&mut self, from: Option<StripeId>) {
        let next = self.read.front().map(|stripe| stripe.id);
        self.read.clear();
        let begun = self.at.take().is_some();
        if let (Some(stretch), Some(from), true) =
            (self.stretches.front_mut(), from.or(next), begun)
        {
            stretch.first = stretch.first.max(from).min(stretch.last);
        }
    }

    /// A stripe that was to be handed over comes again.
    pub(crate) fn unread(&mut self, stripe: Stripe) {
        self.read.push_front(stripe);
    }

    /// A segment could not be made although all of its stripes were taken. No stripe is to blame
    /// for an indexer that was killed meanwhile.
    pub(crate) fn failed(&mut self, closing: &Closing, is_to_blame: bool, is_counted: bool) {
        let Closing { first, last, epoch, packets, times, .. } = *closing;
        let failures = self.failures.entry(first).or_default();
        *failures = failures.saturating_add(is_to_blame.into());
        let failures = *failures;
        if self.failures.len() > STRETCHES_MAX {
            self.failures.pop_first();
        }
        if failures <= FAILURES_MAX {
            let is_given_up = failures == FAILURES_MAX;
            self.add(Stretch { first, last, epoch, packets, times, is_counted, is_given_up });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The stretch that is under way, or next.
    pub(crate) fn current(&self) -> Option<&Stretch> {
        self.stretches.front()
    }

    /// The first stretch is done with.
    pub(crate) fn end_current(&mut self) -> Option<Stretch> {
        self.at = None;
        self.read.clear();
        self.stretches.pop_front()
    }

    /// The next thing to do for the first stretch, once it is durable.
    pub(crate) fn next(
        &mut self,
        (tail, acknowledged): (Sequence, StripeId),
        from: &mut ReadBack<'_>,
    ) -> Step {
        loop {
            let Some(stretch) = self.stretches.front() else { return Step::NotNow };
            if stretch.last > acknowledged {
                return Step::NotNow;
            }
            if let Some(stripe) = self.read.pop_front() {
                return Step::Stripe(Box::new(stripe));
            }
            if stretch.is_given_up {
                return Step::GiveUp(stretch.clone());
            }
            let (first, last) = (stretch.first, stretch.last);
            let sequence = self.at.unwrap_or(first.sequence).max(tail);
            if sequence > last.sequence {
                return Step::End;
            }
            let of_slot = StripeId { sequence, sub: u16::MAX }.min(last);
            match from.slot(of_slot) {
                Slot::NotNow => return Step::NotNow,
                Slot::Read(stripes, missing) => {
                    let within = |found: &Found| (first..=last).contains(&found.id);
                    // Who has the key indexes it: a segment without its rows would hide them.
                    if stripes.iter().any(|found| within(found) && found.is_locked) {
                        return Step::End;
                    }
                    self.at = Some(sequence + 1);
                    let next = StripeId { sequence: sequence + 1, sub: 0 };
                    let behind = |id| stripes.iter().map(|it| it.id).find(|it| *it > id);
                    let bad = |id| (first.max(id), behind(id).unwrap_or(next));
                    let missing = missing.into_iter().map(bad);
                    let missing = missing.filter(|(id, behind)| *behind > first && *id <= last);
                    let damaged = stripes.iter().filter(|it| within(it) && !it.is_whole);
                    let bad = damaged.map(|it| bad(it.id)).chain(missing).min();
                    let is_before = |found: &&Found| bad.is_none_or(|(id, _)| found.id < id);
                    let found = stripes.iter().filter(|found| within(found)).filter(is_before);
                    self.read.extend(found.map(|found| found.to_hand_over(RunKind::Past)));
                    if let Some((damaged, behind)) = bad {
                        self.split(damaged, behind);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
