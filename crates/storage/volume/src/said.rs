//! What heads say of the stretches of recording: format::recorded.

use format::head::{Head, Kind, StripeId};
use format::recorded::{Earlier, Recorded};

use crate::Reader;

/// Slots that are looked at for a head that says what was recorded: openings that recorded nothing
/// may lie between.
const BACK: usize = 256;
/// Stretches that are looked at for the latest times.
const STRETCHES: usize = 4096;

/// A head that says what was recorded.
#[derive(Clone, Debug)]
pub struct Said {
    /// Opening of the volume in which that was.
    pub epoch: u32,
    /// It is the one of an orderly stop.
    pub is_stop: bool,
    /// What it says.
    pub recorded: Recorded,
}

impl Said {
    fn by(head: &Head) -> Option<Self> {
        let stripe = &head.stripe;
        let recorded = stripe.recorded.clone()?;
        Some(Self { epoch: stripe.epoch, is_stop: stripe.clean_stop, recorded })
    }
}

impl Reader {
    /// The newest one: a head without a body says it of the stripes in front, which it covers.
    pub fn said(&self) -> Option<Said> {
        self.newest_said().0
    }

    /// And whether there are stripes with packets behind it.
    fn newest_said(&self) -> (Option<Said>, bool) {
        let Some(span) = self.span() else { return (None, false) };
        let last = self.last_head().filter(|head| {
            let stripe = &head.stripe;
            let has_body = matches!(stripe.kind, Kind::Data | Kind::Index | Kind::Key);
            !has_body && stripe.acknowledged >= stripe.previous
        });
        match last.and_then(Said::by) {
            Some(said) => (Some(said), false),
            None => self.said_before(span.acknowledged.after(), span.tail),
        }
    }

    /// The newest one in front of a stripe, down to the sequence `tail`, and whether stripes with
    /// packets lie between that have heads which say nothing.
    pub fn said_before(&self, stripe: StripeId, tail: u64) -> (Option<Said>, bool) {
        let mut has_packets = false;
        for sequence in (tail..=stripe.sequence).rev().take(BACK) {
            for head in self.leading_heads(sequence).iter().rev() {
                if head.stripe.stripe >= stripe {
                    continue;
                }
                // One that says it begins behind itself says nothing.
                let said = Said::by(head).filter(|said| said.recorded.start <= head.stripe.stripe);
                if said.is_some() {
                    return (said, has_packets);
                }
                has_packets |= head.stripe.kind == Kind::Data;
            }
        }
        (None, has_packets)
    }

    /// Up to when what is held here was recorded, by the clocks of those times; `None` where heads
    /// do not say it.
    pub fn recorded_until(&self) -> Option<Earlier> {
        let Some(span) = self.span() else { return Some(Earlier::NOTHING) };
        let (mut said, mut is_unsaid) = self.newest_said();
        let mut until = Earlier::NOTHING;
        for _ in 0..STRETCHES {
            let Some(Said { is_stop, recorded, .. }) = said else {
                return (!is_unsaid).then_some(until);
            };
            until = until.or(recorded.until(is_stop));
            if recorded.earlier.is_some() || recorded.start.sequence < span.tail {
                return Some(until);
            }
            (said, is_unsaid) = self.said_before(recorded.start, span.tail);
        }
        None
    }
}
