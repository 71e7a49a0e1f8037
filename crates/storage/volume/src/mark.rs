//! How far the ring has come, as the superblocks say it.
//!
//! Heads alone say where the ring ends only where they can be read: a hole in them looks like the
//! end of a ring that was never written further, and what lies behind it would be written over. So
//! now and then the superblocks say what is acknowledged, and how far the ring may come before they
//! say more; an orderly stop says that nothing follows.

use format::geometry::Geometry;
use format::head::{SEQUENCE_MAX, StripeId};
use format::superblock::{Mark, Superblock};
use units::{Clock, Epoch, Sequence};

/// Slots that are written before the superblocks are, and that a mount may have to look at one by
/// one, on the first lap: behind what is written nothing can be read there.
const FIRST_LAP: u64 = 576;
/// Of a ring that has fewer a part as large as this.
const SMALL_SHARE: u64 = 4;
/// With W at most 64: how far the ring may come on the first lap before the superblocks say more.
pub(crate) const FIRST_LAP_AHEAD_MAX: u64 = FIRST_LAP + 2 * 64 + 2;
/// Later every slot has a head, old or new, and the end is found among many in few steps.
const LATER_SHARE: u64 = 8;

/// The ring surely came to here: what is acknowledged, the EPOCH stripe of the newest joined epoch,
/// or where stripes begin that were not given up; 0 before the first.
pub(crate) fn reached(superblock: &Superblock) -> Sequence {
    let Superblock { joined_start, given_up_before, mark, .. } = superblock;
    (*joined_start).max(*given_up_before).max(mark.acknowledged.sequence)
}

/// Oldest sequence that a ring whose newest head is `newest` holds for certain and still gives out.
/// Up to W slots ahead of it may hold the remains of stripes that were in flight when a writer
/// crashed, and so neither the old nor a new stripe. Lap 0 is never written: the first sequence is
/// N. What was given up is being erased.
pub fn tail_behind(newest: Sequence, superblock: &Superblock) -> Sequence {
    let slots = superblock.geometry.slots;
    let held_from = (newest + 1 + u64::from(superblock.window)).saturating_sub(slots);
    held_from.max(superblock.geometry.first_sequence()).max(superblock.given_up_before)
}

/// The ring ends there: the writer stopped in order, and no writer has begun since.
pub(crate) fn is_stopped(superblock: &Superblock, prepared_epoch: Epoch) -> bool {
    let mark = superblock.mark;
    mark.is_stopped
        && mark.acknowledged.sequence > superblock.joined_start
        && prepared_epoch == superblock.joined_epoch
}

/// What a superblock says of a ring that was acknowledged up to there.
pub fn of(
    superblock: &Superblock,
    acknowledged: StripeId,
    is_stopped: bool,
    clock: &dyn Clock,
) -> Mark {
    let until = until(superblock, acknowledged.sequence);
    Mark { acknowledged, until, is_stopped, at: clock.realtime() }
}

/// What is said before anything is written at `from` in the name of an epoch to come: it does not
/// raise what is acknowledged before it has come up.
pub fn of_epoch(superblock: &Superblock, from: Sequence) -> Mark {
    let until = until(superblock, from).max(superblock.mark.until);
    Mark { until, ..superblock.mark }
}

/// Whether the superblocks are to be written before more is: half of what they allow is used.
pub fn is_due(superblock: &Superblock, acknowledged: StripeId) -> bool {
    acknowledged.sequence
        >= reached(superblock) + interval(&superblock.geometry, reached(superblock))
}

/// A writer asks [`is_due`] before each stripe, and is at most W slots ahead of what is
/// acknowledged; closing a slot and beginning an epoch take one more each.
fn until(superblock: &Superblock, from: Sequence) -> Sequence {
    let ahead = interval(&superblock.geometry, from) + 2 * u64::from(superblock.window) + 2;
    (from + ahead).min(SEQUENCE_MAX)
}

fn interval(geometry: &Geometry, sequence: Sequence) -> u64 {
    let is_small = geometry.slots < FIRST_LAP;
    let first_lap = if is_small { (geometry.slots / SMALL_SHARE).max(1) } else { FIRST_LAP };
    let is_first_lap = sequence < Sequence(2 * geometry.slots);
    if is_first_lap { first_lap } else { first_lap.max(geometry.slots / LATER_SHARE) }
}
