//! Which slots hold nothing but what is expired, and taking them off the members of a volume that
//! no recorder has open.
//!
//! Slots expire in the order of the ring: one that holds anything younger keeps those behind it.
//! A stripe expires with its newest packet, or when it was recorded as long ago: a packet with a
//! time in the future does not hold up the ring. What has no packets expires with what lies before
//! it: the rows of an INDEX are of packets in front of it.

use core::ops::{ControlFlow, Range};

use format::head::{Head, Kind};
use format::key_row::DestroyedKey;
use units::{Clock, Timestamp};

use crate::{Error, Reader, Writer};

/// Slots that are looked at before they are given up: it costs a few flushes.
const SLOTS_AT_ONCE: u64 = 1024;
/// So many without packets and index are given up, or those behind them never would be.
const EMPTY_MAX: u64 = 1024;

impl Reader {
    /// The first of `sequences` of which something is not expired at `through`; their end when all
    /// is. Needs superblocks alone; every slot of them must be closed. A few that never held
    /// anything are no reason to give up any: who gives up slots says that packets were erased.
    pub fn expired_until(&self, sequences: Range<u64>, through: Timestamp) -> u64 {
        let (mut until, mut is_worth_it) = (sequences.start, false);
        for sequence in sequences.clone() {
            let Some(has_held) = self.expired(sequence, through) else { break };
            is_worth_it |= has_held;
            until = sequence + 1;
        }
        is_worth_it |= until - sequences.start >= EMPTY_MAX;
        if is_worth_it { until } else { sequences.start }
    }

    /// Of a slot of which all has expired whether it holds packets or index.
    fn expired(&self, sequence: u64, through: Timestamp) -> Option<bool> {
        if let Some(heads) = self.heads(sequence) {
            let is_held = |head: &Head| matches!(head.stripe.kind, Kind::Data | Kind::Index);
            let has_expired = heads.iter().all(|head| has_expired(head, through));
            return has_expired.then(|| heads.iter().any(is_held));
        }
        // Where a head is lost, what follows says how long ago it was recorded at the latest.
        let reach = 2 * u64::from(self.superblock().window);
        let next = (sequence + 1..=sequence + reach).find_map(|sequence| self.head(sequence));
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

/// Result of erasing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Erased {
    /// Keys that were destroyed first, of a volume that is encrypted: by their end nobody can read
    /// any more what they encrypted, whatever is still to be overwritten.
    pub keys: Vec<DestroyedKey>,
    /// Slots that were given up now.
    pub slots: u64,
    /// Slots that were given up, now or before, and are not overwritten.
    pub left: u64,
    /// It was broken off.
    pub is_stopped: bool,
}

/// Erases everything that is older than `age_ns` and has expired, on a volume that no recorder has
/// open; `progress` gets (bytes done, bytes in all, as far as known) and may stop it. What an
/// earlier writer left undone is done first. With `keys_alone` nothing is overwritten.
pub fn erase(
    writer: &mut Writer,
    (age_ns, keys_alone): (i64, bool),
    open_reader: &dyn Fn(&Writer) -> Result<Reader, Error>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Erased, Error> {
    writer.leave_slot(clock)?;
    let through = writer.erasable_through(age_ns, clock);
    let piece_bytes = u64::from(writer.geometry().piece_bytes);
    let first = writer.erasable().start;
    let keys = writer.destroy_keys(age_ns, clock)?;
    let slots = writer.superblock().given_up_before.saturating_sub(first);
    let left = writer.left_to_erase();
    let mut erased = Erased { keys, slots, left, is_stopped: false };
    if keys_alone {
        return Ok(erased);
    }
    let (mut done, mut total) = (0, writer.left_to_erase());
    loop {
        while writer.erase_next(clock)? {
            writer.poll_at_once(clock)?;
            let left = writer.left_to_erase();
            done = total - left.min(total);
            if progress(done * piece_bytes, total * piece_bytes).is_break() {
                erased.is_stopped = true;
                break;
            }
        }
        writer.drain(clock)?;
        writer.note_erased(clock)?;
        let all = writer.erasable();
        let sequences = all.start..all.end.min(all.start + SLOTS_AT_ONCE);
        let found = open_reader(writer)?.expired_until(sequences.clone(), through);
        if erased.is_stopped || found == sequences.start {
            erased.left = writer.left_to_erase();
            return Ok(erased);
        }
        writer.give_up_before(found, clock)?;
        erased.slots += found - sequences.start;
        total = done + writer.left_to_erase();
    }
}
