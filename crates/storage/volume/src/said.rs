//! What heads say of the stretches of recording: [`format::recorded`].
//!
//! A head says it of all stripes up to its own. So it counts where these are known to be durable:
//! it has no body, and everything in front is acknowledged; or a later head of the same opening has
//! acknowledged it. One that is only there, behind others that a crash has taken, does not say that
//! they are.

use format::head::{Head, Kind, StripeId};
use format::recorded::{Earlier, Recorded};
use units::{EachSequence, Epoch, Sequence};

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

impl Reader {
    /// The newest stretch, and whether stripes with packets lie behind it that have heads which say
    /// nothing.
    pub fn said(&self) -> (Option<Said>, bool) {
        let (Some(span), Some(last)) = (self.span(), self.last_head()) else {
            return (None, false);
        };
        let shown = Acknowledged { epoch: last.stripe.epoch, stripe: span.acknowledged };
        let by_last = Said::by(last, shown).filter(|_| has_no_gap(last));
        match by_last {
            Some(said) => (Some(said), false),
            None => self.said_in_front(span.acknowledged.after(), shown),
        }
    }

    /// The stretch before one, and whether stripes with packets lie between that have heads which
    /// say nothing.
    pub fn said_before(&self, later: &Said) -> (Option<Said>, bool) {
        self.said_in_front(later.recorded.start, later.acknowledged)
    }

    fn said_in_front(
        &self,
        before: StripeId,
        mut acknowledged: Acknowledged,
    ) -> (Option<Said>, bool) {
        let tail = self.span().map_or(Sequence::MAX, |span| span.tail);
        let (mut begun, mut has_packets) = (None::<Said>, false);
        for sequence in (tail..=before.sequence).each().rev().take(BACK) {
            for head in self.leading_heads(sequence).iter().rev() {
                acknowledged = acknowledged.and(head);
                let stripe = head.stripe.stripe;
                if begun.as_ref().is_some_and(|begun| stripe < begun.recorded.start) {
                    return (begun, has_packets);
                }
                match Said::by(head, acknowledged).filter(|_| stripe < before) {
                    Some(said) if acknowledged.counts(head) => return (Some(said), has_packets),
                    Some(said) => begun = begun.or(Some(said)),
                    None => has_packets |= stripe < before && head.stripe.kind == Kind::Data,
                }
            }
        }
        (begun, has_packets)
    }

    /// Up to when what is held here was recorded, by the clocks of those times; `None` where heads
    /// do not say it.
    pub fn recorded_until(&self) -> Option<Earlier> {
        let Some(span) = self.span() else { return Some(Earlier::NOTHING) };
        let (mut said, mut is_unsaid) = self.said();
        let mut until = Earlier::NOTHING;
        for _ in 0..STRETCHES {
            let Some(later) = said else { return (!is_unsaid).then_some(until) };
            until = until.or(later.recorded.until(later.is_stop));
            if later.recorded.earlier.is_some() || later.recorded.start.sequence < span.tail {
                return Some(until);
            }
            (said, is_unsaid) = self.said_before(&later);
        }
        None
    }
}
