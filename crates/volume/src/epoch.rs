//! Beginning an epoch: when a volume is mounted, and when a running writer goes on without one of
//! its members.
//!
//! PREPARE: a number that no epoch had, durable before anything else is written. Then a stripe of
//! kind EPOCH in a fresh slot: the watermark of everything that is kept. JOIN: the superblocks name
//! the epoch, where it starts and who takes part; only then may anything be shown or acknowledged.
//! A member that missed the JOIN is stale from then on.

use core::ops::Range;

use format::head::{Kind, StripeHead, StripeId};
use format::superblock::{MemberEntry, NEVER, Superblock};
use units::Clock;

use crate::lanes::{Failed, Lanes};
use crate::membership::Membership;
use crate::seal::{Previous, Sealed, empty_head, row_offset, to_slot_end};

/// PREPARE: a new epoch above `seen` and every number that the superblocks know.
pub(crate) fn prepare(lanes: &mut Lanes, seen: u32) -> Result<u32, Failed> {
    let numbers = lanes.iter().map(|lane| {
        let superblock = lane.superblock();
        superblock.prepared_epoch.max(superblock.joined_epoch)
    });
    let epoch = numbers.fold(seen, u32::max) + 1;
    lanes.store(|own| Superblock { prepared_epoch: epoch, ..own.successor() })?;
    Ok(epoch)
}

/// What an epoch begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning<'a> {
    /// Its number, as prepared.
    pub(crate) epoch: u32,
    /// Members that are gone for good: from here on nobody has their seats.
    pub(crate) gone: &'a [u8],
    /// The first slot in which stripes may be of less than all members, or judged anew: what a
    /// member that takes no part does not know.
    pub(crate) judged_from: u64,
    /// Everything up to here is kept, nothing above it exists.
    pub(crate) last: StripeId,
    /// First part of the newest INDEX.
    pub(crate) index: StripeId,
}

/// EPOCH and JOIN. `before` says which members were fresh: the others are whole from here on.
pub(crate) fn join(
    lanes: &mut Lanes,
    before: &Membership,
    beginning: Beginning<'_>,
    clock: &dyn Clock,
) -> Result<Previous, Failed> {
    let Beginning { epoch, gone, judged_from, last, index } = beginning;
    let start = StripeId { sequence: last.sequence + 1, sub: 0 };
    let superblock = Superblock { prepared_epoch: epoch, ..before.superblock().clone() };
    // The watermark covers everything that is about to be shown.
    let head = empty_head(&superblock, Kind::Epoch, (start, 0), clock);
    let sealed = Sealed::new(StripeHead { acknowledged: last, index, ..head });
    write_closing(lanes, &superblock, &sealed, &|_| Some(Part::Whole))?;
    lanes.flush()?;
    let settled = before.settled();
    let generation = lanes.iter().map(|lane| lane.superblock().generation).max();
    let slots = superblock.geometry.slots;
    let columns_before = superblock.geometry_at(start.sequence - 1).columns();
    let members = before.numbers().zip(&superblock.members).map(|(member, entry)| {
        // Should it come back, it is a stranger: K of those that were outside of what was voided
        // would bring it back whole.
        if gone.contains(&member) && lanes.get(member).is_none() {
            return MemberEntry::vacant();
        }
        // What every slot has been written over is missed by nobody.
        let is_held = |gap: &Range<u64>| gap.end.saturating_add(slots) > last.sequence;
        let gap = Some(before.gap(member)).filter(is_held).unwrap_or_default();
        let (stale_from, clean_from) = match lanes.get(member) {
            Some(_) if before.is_fresh(member) => (entry.stale_from, entry.clean_from),
            // The volume has only now grown by it.
            Some(_) if member >= columns_before => (start.sequence, start.sequence),
            Some(_) => (gap.start, start.sequence),
            None if gap.is_empty() => (judged_from, NEVER),
            None => (gap.start.min(judged_from), NEVER),
        };
        MemberEntry { stale_from, clean_from, ..entry.clone() }
    });
    let joined = Superblock {
        joined_epoch: epoch,
        previous_epoch: settled.epoch,
        previous_start: settled.start,
        previous_members: settled.members,
        joined_start: start.sequence,
        joined_members: lanes.bits(),
        generation: generation.expect("a volume has members") + 1,
        members: members.collect(),
        ..superblock.successor()
    };
    // Those that were there before come first: what a newcomer says alone, nobody would know of.
    for comes_first in [true, false] {
        lanes.store_on(
            |member| before.is_fresh(member) == comes_first,
            |own| joined.on_member_of(own),
        )?;
    }
    Ok(sealed.as_previous())
}

/// Closes the slot of `place` in the name of a new epoch: nothing of the old one follows there.
pub(crate) fn close(
    lanes: &mut Lanes,
    before: &Membership,
    (epoch, place, index): (u32, (StripeId, u16), StripeId),
    clock: &dyn Clock,
) -> Result<(), Failed> {
    let superblock = Superblock { prepared_epoch: epoch, ..before.superblock().clone() };
    let head = empty_head(&superblock, Kind::Void, place, clock);
    let sealed = Sealed::new(StripeHead { index, ..head });
    // Who returns has nothing of the slot before it.
    let part = |member| before.is_fresh(member).then_some(Part::Whole);
    write_closing(lanes, &superblock, &sealed, &part)
}

/// How much of a closing stripe is written to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Head and everything behind it, in one go.
    Whole,
    /// The rows behind a head that is good.
    BehindHead,
}

/// Writes a closing stripe of a mount to the members for which `part` gives one. Nothing of the
/// slot's earlier contents stays behind such a head, or it might come back when the head rots.
pub(crate) fn write_closing(
    lanes: &mut Lanes,
    superblock: &Superblock,
    sealed: &Sealed,
    part: &dyn Fn(u8) -> Option<Part>,
) -> Result<(), Failed> {
    let stripe = sealed.stripe();
    lanes.each(|member, lane| {
        // A member that came later has no part in the stripe.
        let part = part(member).filter(|_| member < stripe.geometry.columns());
        let Some(part) = part else { return Ok(()) };
        let column = stripe.geometry.column_of(stripe.stripe.sequence, member);
        let page = sealed.page(superblock, column, 0, Vec::new());
        let from_row = match part {
            Part::Whole => stripe.first_row,
            Part::BehindHead => stripe.first_row + 1,
        };
        if from_row == stripe.geometry.rows_per_slot() {
            return Ok(());
        }
        let bytes = to_slot_end(stripe, (part == Part::Whole).then_some(&page), from_row);
        Ok(lane.device_mut().write_at(row_offset(stripe, from_row), &bytes)?)
    })
}
