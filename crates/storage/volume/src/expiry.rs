//! How long packets are kept, and which slots hold nothing but what is expired.
//!
//! Slots expire in the order of the ring: one that holds anything younger keeps those behind it.
//! A stripe expires with its newest packet, or when it was recorded as long ago: a packet with a
//! time in the future does not hold up the ring. What has no packets expires with what lies before
//! it: the rows of an INDEX are of packets in front of it.

use core::ops::Range;

use format::head::{Head, Kind};
use format::superblock::Superblock;
use units::{EachSequence, Sequence, Timestamp};

use crate::Reader;

/// So many without packets and index are given up, or those behind them never would be.
const EMPTY_MAX: u64 = 1024;

/// How long packets are kept, besides what the ring overwrites.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Older packets are not given out, in nanoseconds; 0: whatever their age.
    pub max_age_ns: i64,
    /// They are also erased.
    pub erases: bool,
}

impl Retention {
    /// As a superblock has it.
    pub fn of(superblock: &Superblock) -> Self {
        Self { max_age_ns: superblock.max_age_ns, erases: superblock.erases }
    }
}

impl Reader {
    /// The first of `sequences` of which something is not expired at `through`; their end when all
    /// is. Needs superblocks alone; every slot of them must be closed. A few that never held
    /// anything are no reason to give up any: who gives up slots says that packets were erased.
    pub fn expired_until(&self, sequences: Range<Sequence>, through: Timestamp) -> Sequence {
        let (mut until, mut is_worth_it) = (sequences.start, false);
        for sequence in sequences.clone().each() {
            let Some(has_held) = self.expired(sequence, through) else { break };
            is_worth_it |= has_held;
            until = sequence + 1;
        }
        is_worth_it |= until - sequences.start >= EMPTY_MAX;
        if is_worth_it { until } else { sequences.start }
    }

    /// Of a slot of which all has expired whether it holds packets or index.
    fn expired(&self, sequence: Sequence, through: Timestamp) -> Option<bool> {
        if let Some(heads) = self.heads(sequence) {
            let is_held = |head: &Head| matches!(head.stripe.kind, Kind::Data | Kind::Index);
            let has_expired = heads.iter().all(|head| has_expired(head, through));
            return has_expired.then(|| heads.iter().any(is_held));
        }
        // Where a head is lost, what follows says how long ago it was recorded at the latest.
        let reach = 2 * u64::from(self.superblock().window);
        let next =
            (sequence + 1..=sequence + reach).each().find_map(|sequence| self.head(sequence));
        next.is_some_and(|head| head.stripe.realtime <= through).then_some(true)
    }
}

fn has_expired(head: &Head, through: Timestamp) -> bool {
    let stripe = &head.stripe;
    match stripe.kind {
        Kind::Data if stripe.totals.packets > 0 => stripe.time_max.min(stripe.realtime) <= through,
        Kind::Data => stripe.realtime <= through,
        _ => true,
    }
}
