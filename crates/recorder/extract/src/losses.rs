//! What is lost of a volume, stripe by stripe: exact, because every head of a stripe says how many
//! packets all of its pieces hold.

use completeness::{Completeness, DamageKind, form};
use format::geometry::{Geometry, ROW_BYTES};
use format::head::{Head, StripeId};
use serde::Serialize;
use units::Timestamp;
use units::number::{sum, to_u64};

/// An Enhanced Packet Block without a packet's bytes: type, two lengths of the block, interface,
/// time, two lengths of the packet (draft-ietf-opsawg-pcapng, section 4.3).
const PACKET_BLOCK_BYTES_MIN: u64 = 32;

/// Packets that were stored and cannot be had. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Loss {
    /// Stripe with the lost packets.
    pub stripe: StripeId,
    /// How many; `None` where no head of the stripe is left to say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Of so many in the stripe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_packets: Option<u64>,
    /// Earliest and latest packet of the stripe.
    #[serde(flatten, serialize_with = "form::hull")]
    pub times: Option<(Timestamp, Timestamp)>,
}

/// What losses come to. Fields are keys in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LossSums {
    /// Packets of the losses that are counted.
    pub lost_packets: u64,
    /// Stripes of which nothing says how many packets they held.
    pub unknown_stripes: u64,
    /// As many packets as fit into those, if none of them had a byte.
    pub unknown_packets_at_most: u64,
}

impl LossSums {
    /// Those of a volume of this shape.
    pub fn of(losses: &[Loss], geometry: &Geometry) -> Self {
        let unknown_stripes = to_u64(losses.iter().filter(|loss| loss.packets.is_none()).count());
        let body_bytes = u64::from(geometry.piece_bytes - ROW_BYTES);
        let of_stripe = u64::from(geometry.data_columns) * body_bytes / PACKET_BLOCK_BYTES_MIN;
        Self {
            lost_packets: sum(losses.iter().filter_map(|loss| loss.packets)),
            unknown_stripes,
            unknown_packets_at_most: unknown_stripes.saturating_mul(of_stripe),
        }
    }
}

/// Counts what is found against what was stored. Stripes come in order, all columns of each.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// In ring order.
    list: Vec<Loss>,
    current: Option<Loss>,
}

impl Losses {
    /// A piece of which `found` packets could be read.
    pub(crate) fn note(&mut self, head: &Head, found: u64) {
        let stripe = &head.stripe;
        if self.current.as_ref().is_none_or(|current| current.stripe != stripe.stripe) {
            self.settle();
            let all = stripe.totals.packets;
            self.current = Some(Loss {
                stripe: stripe.stripe,
                packets: Some(all),
                of_packets: Some(all),
                times: (all > 0).then_some((stripe.time_min, stripe.time_max)),
            });
        }
        if let Some(Loss { packets: Some(left), .. }) = &mut self.current {
            *left = left.saturating_sub(found);
        }
    }

    /// Takes over what a run notes of damage: a list for millions of stripes is kept here.
    pub(crate) fn take(&mut self, completeness: &mut Completeness) {
        for damage in completeness.damage.drain(..) {
            if damage.kind == DamageKind::Missing {
                let (packets, of_packets, times) = (None, None, None);
                self.list.push(Loss { stripe: damage.stripe, packets, of_packets, times });
            }
        }
    }

    fn settle(&mut self) {
        let lost = self.current.take().filter(|loss| loss.packets != Some(0));
        self.list.extend(lost);
    }

    /// Nothing follows. What is lost is missing from the answer.
    pub(crate) fn finish(&mut self, completeness: &mut Completeness) {
        self.take(completeness);
        self.settle();
        // A missing stripe is noted once for each of its columns.
        self.list.sort_by_key(|loss| (loss.stripe, loss.packets.is_none()));
        self.list.dedup_by_key(|loss| loss.stripe);
        self.list.iter().filter_map(|loss| loss.packets).for_each(|lost| completeness.miss(lost));
        let missing = self.list.iter().filter(|loss| loss.packets.is_none());
        for loss in missing {
            completeness.add_damage(loss.stripe, DamageKind::Missing);
        }
    }

    pub(crate) fn into_list(self) -> Vec<Loss> {
        self.list
    }
}
