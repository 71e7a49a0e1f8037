//! What heads say of the stretches of recording: [`format::recorded`].
//!
//! A head says it of all stripes up to its own. So it counts where these are known to be durable:
//! it has no body, and everything in front is acknowledged; or a later head of the same opening has
//! acknowledged it. One that is only there, behind others that a crash has taken, does not say that
//! they are.

use format::head::{Head, Kind, StripeHead, StripeId};
use format::recorded::{ALIVE_NS, Earlier, Recorded};
use units::{EachSequence, Epoch, Sequence, Timestamp};

use crate::Reader;

/// Slots that are looked at for a head that says what was recorded: openings that recorded nothing
/// may lie between.
const BACK: usize = 256;
/// Stretches that are looked at for the latest times.
const STRETCHES: usize = 4096;

/// What a head says of its stretch.
#[derive(Clone, Debug)]
pub struct Said {
    /// It is the one of an orderly stop.
    pub is_stop: bool,
    /// What it says. Where none of the heads of a stretch counts, it is known to have begun.
    pub recorded: Recorded,
    /// What its opening of the volume has acknowledged.
    pub acknowledged: Acknowledged,
}

/// Everything up to a stripe was durable, by the heads of one opening of the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledged {
    /// Number of the opening.
    pub epoch: Epoch,
    /// The last stripe that it has acknowledged.
    pub stripe: StripeId,
}

impl Acknowledged {
    /// With what a head in front says; where that is of an earlier opening, it begins anew.
    fn and(self, head: &Head) -> Self {
        let (epoch, stripe) = (head.stripe.epoch, head.stripe.acknowledged);
        let is_same = self.epoch == epoch;
        Self { epoch, stripe: if is_same { self.stripe.max(stripe) } else { stripe } }
    }

    /// Whether a head says of all stripes up to its own that they were recorded.
    fn counts(self, head: &Head) -> bool {
        has_no_gap(head) || (head.stripe.epoch == self.epoch && head.stripe.stripe <= self.stripe)
    }
}

/// A head without a body, which was written when everything in front was acknowledged.
fn has_no_gap(head: &Head) -> bool {
    let has_body = matches!(head.stripe.kind, Kind::Data | Kind::Index | Kind::Key);
    !has_body && head.stripe.acknowledged >= head.stripe.previous
}

impl Said {
    /// `None` also of one that says that its stretch begins behind itself.
    fn by(head: &Head, acknowledged: Acknowledged) -> Option<Self> {
        let mut recorded = head.stripe.recorded.clone()?;
        if !acknowledged.counts(head) {
            recorded.through = recorded.from;
        }
        let is_stop = head.stripe.clean_stop;
        let begins_before = recorded.start <= head.stripe.stripe;
        begins_before.then_some(Self { is_stop, recorded, acknowledged })
    }
}

/// What lies in front of a stretch of recording, or at the end of a volume.
#[derive(Clone, Debug, Default)]
pub struct InFront {
    /// The stretch there.
    pub said: Option<Said>,
    /// Stripes with packets lie between that have heads which say nothing.
    pub has_packets: bool,
    /// When the volume was opened between by somebody who neither said anything nor stopped in
    /// order: a recorder that ended in its first second. Newest first.
    pub silent: Vec<Silent>,
    /// When the one that came next opened it, as far as that is known.
    opened: Option<Timestamp>,
}

/// An opening of which nothing else is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silent {
    /// When that was.
    pub at: Timestamp,
    /// The next one opened the volume at an earlier time: the clock was set back between.
    pub is_before_a_step: bool,
}

impl InFront {
    /// Takes a head in front of those so far, of which the opening `speaks` has said something.
    fn pass(&mut self, head: &Head, is_asked: bool, speaks: &mut Epoch) {
        let StripeHead { kind, epoch, realtime, clean_stop, .. } = head.stripe;
        let is_packets = is_asked && kind == Kind::Data;
        self.has_packets |= is_packets;
        if is_packets || clean_stop {
            *speaks = epoch;
        }
        if kind == Kind::Epoch {
            if epoch != *speaks {
                let is_before_a_step = self.opened.is_some_and(|next| next < realtime);
                self.silent.push(Silent { at: realtime, is_before_a_step });
            }
            self.opened = Some(realtime);
        }
    }

    /// Where nothing is said of those in between: nothing was recorded later, and nothing lost.
    fn until(&self) -> Earlier {
        let lost = self.silent.iter().map(|it| it.at.plus_nanos(ALIVE_NS)).max();
        lost.map_or(Earlier::NOTHING, |lost| Earlier { latest: lost, lost })
    }
}

impl Reader {
    /// The newest stretch.
    pub fn said(&self) -> InFront {
        let (Some(span), Some(last)) = (self.span(), self.last_head()) else {
            return InFront::default();
        };
        let shown = Acknowledged { epoch: last.stripe.epoch, stripe: span.acknowledged };
        match Said::by(last, shown).filter(|_| has_no_gap(last)) {
            Some(said) => InFront { said: Some(said), ..InFront::default() },
            None => self.said_in_front(span.acknowledged.after(), shown),
        }
    }

    /// The stretch before one.
    pub fn said_before(&self, later: &Said) -> InFront {
        self.said_in_front(later.recorded.start, later.acknowledged)
    }

    fn said_in_front(&self, before: StripeId, mut acknowledged: Acknowledged) -> InFront {
        let tail = self.span().map_or(Sequence::MAX, |span| span.tail);
        let (mut found, mut speaks) = (InFront::default(), acknowledged.epoch);
        for sequence in (tail..=before.sequence).each().rev().take(BACK) {
            for head in self.leading_heads(sequence).iter().rev() {
                acknowledged = acknowledged.and(head);
                let stripe = head.stripe.stripe;
                if found.said.as_ref().is_some_and(|begun| stripe < begun.recorded.start) {
                    return found;
                }
                match Said::by(head, acknowledged).filter(|_| stripe < before) {
                    Some(said) if acknowledged.counts(head) => {
                        return InFront { said: Some(said), ..found };
                    }
                    Some(said) => found.said = found.said.or(Some(said)),
                    None => found.pass(head, stripe < before, &mut speaks),
                }
            }
        }
        found
    }

    /// Up to when what is held here was recorded, by the clocks of those times; `None` where heads
    /// do not say it.
    pub fn recorded_until(&self) -> Option<Earlier> {
        let Some(span) = self.span() else { return Some(Earlier::NOTHING) };
        let (mut found, mut until) = (self.said(), Earlier::NOTHING);
        for _ in 0..STRETCHES {
            until = until.or(found.until());
            let Some(later) = found.said else { return (!found.has_packets).then_some(until) };
            until = until.or(later.recorded.until(later.is_stop));
            if later.recorded.earlier.is_some() || later.recorded.start.sequence < span.tail {
                return Some(until);
            }
            found = self.said_before(&later);
        }
        None
    }
}
