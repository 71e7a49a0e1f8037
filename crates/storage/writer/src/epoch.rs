//! Beginning an epoch: when a volume is mounted, and when a running writer goes on without one of
//! its members.
//!
//! PREPARE: a number that no epoch had, durable before anything else is written. Then a stripe of
//! kind EPOCH in a fresh slot: the watermark of everything that is kept. JOIN: the superblocks name
//! the epoch, where it starts and who takes part; only then may anything be shown or acknowledged.
//! A member that missed the JOIN is stale from then on.

use core::ops::Range;

use device::Pool;
use format::head::{EPOCH_MAX, HEAD_BYTES, Kind, SEQUENCE_MAX, StripeHead, StripeId};
use format::superblock::{GENERATION_MAX, MemberEntry, NEVER, Superblock};
use units::{Clock, Epoch, MemberId, Sequence};
use volume::seal::{Previous, Sealed, empty_head, rest, row_offset};
use volume::{Error, Membership, mark};

use crate::explained::Explained;
use crate::member_writers::{Failed, MemberWriters};
use crate::steps::Step;

/// The last epoch that is begun: what can be read goes on a little further.
const EPOCH_LAST: Epoch = Epoch(EPOCH_MAX.get() - (1 << 16));

/// PREPARE: a new epoch above `seen` and every number that the superblocks know, which begins
/// behind `last`.
pub(crate) fn prepare(
    writers: &mut MemberWriters,
    seen: Epoch,
    last: Sequence,
    clock: &dyn Clock,
) -> Result<Epoch, Failed> {
    let numbers = writers.iter().map(|writer| {
        let superblock = writer.superblock();
        superblock.prepared_epoch.max(superblock.joined_epoch)
    });
    // Readable numbers have successors: see `EPOCH_MAX` and `GENERATION_MAX`.
    let epoch = numbers.fold(seen, Epoch::max).next();
    let generation = writers.iter().map(|writer| writer.superblock().generation).max().unwrap_or(0);
    if epoch > EPOCH_LAST || generation > GENERATION_MAX / 2 {
        return Err(Failed::of_nobody(Error::Exhausted("openings")));
    }
    writers.store(clock, |own| Superblock {
        prepared_epoch: epoch,
        mark: mark::of_epoch(own, last),
        ..own.successor()
    })?;
    Ok(epoch)
}

/// What an epoch begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning<'a> {
    /// Its number, as prepared.
    pub(crate) epoch: Epoch,
    /// Members that are gone for good: from here on their seats are empty.
    pub(crate) gone: &'a [MemberId],
    /// The first slot in which stripes may be of less than all members, or judged anew: what a
    /// member that takes no part does not know.
    pub(crate) judged_from: Sequence,
    /// Everything up to here is kept, nothing above it exists.
    pub(crate) last: StripeId,
    /// First part of the newest INDEX.
    pub(crate) index: StripeId,
    /// How late it may be.
    pub(crate) explained: Explained,
}

/// EPOCH and JOIN. `before` says which members were fresh: the others are whole from here on.
pub(crate) fn join(
    writers: &mut MemberWriters,
    before: &Membership,
    beginning: Beginning<'_>,
    clock: &dyn Clock,
) -> Result<Previous, Failed> {
    let Beginning { epoch, gone, judged_from, last, index, explained } = beginning;
    let start = StripeId { sequence: last.sequence + 1, sub: 0 };
    if start.sequence > Sequence(SEQUENCE_MAX.get() / 2) {
        return Err(Failed::of_nobody(Error::Exhausted("stripes")));
    }
    let superblock = Superblock { prepared_epoch: epoch, ..before.superblock().clone() };
    // The watermark covers everything that is about to be shown.
    let head = empty_head(&superblock, Kind::Epoch, (start, 0), clock);
    let sealed = Sealed::new(StripeHead { acknowledged: last, index, ..head });
    write_closing(writers, (&superblock, &sealed), &|_| Some(Part::Whole), clock)?;
    writers.flush(clock)?;
    let settled = before.settled();
    let generation = writers.iter().map(|writer| writer.superblock().generation).max();
    let slots = superblock.geometry.slots;
    let shape_before = superblock.geometry_at(start.sequence - 1);
    let members = before.numbers().zip(&superblock.members).map(|(member, entry)| {
        // Should it come back, it is a stranger: K of those that were outside of what was voided
        // would bring it back whole.
        if gone.contains(&member) && writers.get(member).is_none() {
            return MemberEntry::vacant();
        }
        // What every slot has been written over is missed by no member.
        let is_held = |gap: &Range<Sequence>| gap.end.saturating_add(slots) > last.sequence;
        let gap = Some(before.gap(member)).filter(is_held).unwrap_or_default();
        let (stale_from, clean_from) = match writers.get(member) {
            Some(_) if before.is_fresh(member) => (entry.stale_from, entry.clean_from),
            // The volume has only now grown by it.
            Some(_) if !shape_before.has_member(member) => (start.sequence, start.sequence),
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
        joined_members: writers.bits(),
        mark: mark::of_epoch(&superblock, start.sequence),
        generation: generation.expect("a volume has members") + 1,
        members: members.collect(),
        ..superblock.successor()
    };
    let joined = explained.noted(joined, clock);
    // Those that were there before come first: what a newcomer says alone, no other member would
    // know.
    for comes_first in [true, false] {
        writers.store_on(
            clock,
            |member| before.is_fresh(member) == comes_first,
            |own| joined.on_member_of(own),
        )?;
    }
    Ok(sealed.as_previous())
}

/// Closes the slot of `place` in the name of a new epoch: nothing of the old one follows there.
pub(crate) fn close(
    writers: &mut MemberWriters,
    before: &Membership,
    (epoch, place, index): (Epoch, (StripeId, u16), StripeId),
    clock: &dyn Clock,
) -> Result<(), Failed> {
    let superblock = Superblock { prepared_epoch: epoch, ..before.superblock().clone() };
    let head = empty_head(&superblock, Kind::Void, place, clock);
    let sealed = Sealed::new(StripeHead { index, ..head });
    // Who returns has nothing of the slot before it.
    let part = |member| before.is_fresh(member).then_some(Part::Whole);
    write_closing(writers, (&superblock, &sealed), &part, clock)
}

/// How much of a closing stripe is written to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Head and everything behind it.
    Whole,
    /// The rows behind a head that is good.
    BehindHead,
}

/// Writes a closing stripe of a mount to the members for which `part` gives one. Nothing of the
/// slot's earlier contents stays behind such a head, or it might come back when the head rots.
pub(crate) fn write_closing(
    writers: &mut MemberWriters,
    (superblock, sealed): (&Superblock, &Sealed),
    part: &dyn Fn(MemberId) -> Option<Part>,
    clock: &dyn Clock,
) -> Result<(), Failed> {
    let stripe = sealed.stripe();
    let columns = stripe.geometry.columns();
    let pages = Pool::new(usize::from(columns), HEAD_BYTES);
    let is_last = stripe.first_row + 1 == stripe.geometry.rows_per_slot();
    let behind = if is_last { Ok(None) } else { rest(stripe).map(Some) };
    let (pages, behind) = (pages.map_err(Failed::of_nobody)?, behind.map_err(Failed::of_nobody)?);
    writers.run(clock, |writer| {
        let member = writer.superblock().member;
        // A member that came later has no part in the stripe.
        let Some(part) = part(member).filter(|_| stripe.geometry.has_member(member)) else {
            return Vec::new();
        };
        let write = |row, data| Step::Write { offset: row_offset(stripe, row), data };
        let behind = behind.clone().map(|rows| write(stripe.first_row + 1, rows));
        let head = (part == Part::Whole).then(|| {
            let column = stripe.geometry.column_of(stripe.stripe.sequence, member);
            let mut page = pages.take().expect("a page for every column");
            page.copy_from_slice(&sealed.page(superblock, column, 0, Vec::new()));
            write(stripe.first_row, page.freeze())
        });
        behind.into_iter().chain(head).collect()
    })
}
