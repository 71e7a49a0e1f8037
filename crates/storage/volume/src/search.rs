//! Finding the newest stripe of the ring: a search over laps, by halves or by a grid, a window
//! around its answer, and a scan of every slot where the two do not agree.
//!
//! Sequences count slots through all laps, so the first heads of slots 0, 1, 2 ... show one lap
//! number up to the newest slot and a smaller one, or nothing, behind it. Lap 0 is never written: a
//! fresh ring is empty everywhere. Slots whose first head cannot be read (torn by a crash that
//! no writer has judged yet, or rotted) say nothing, so a probe looks at its neighbours, and the
//! answer is cross-checked: a head below what is acknowledged would be written over data.
//!
//! A hole in the heads looks like the end of a ring that was never written further. So what the
//! superblocks say comes first (`mark`): the end is looked for between what is acknowledged and how
//! far the ring may have come since, there every slot is asked for before unreadable ones are
//! called unwritten, and an orderly stop is the end whatever can be read of it.

use core::cmp::Ordering;
use core::ops::Range;

use format::head::{Head, StripeId};
use units::{EachSequence, Epoch, Sequence, SlotNumber};

use crate::heads::Heads;
use crate::membership::Membership;
use crate::slot_view::SlotBytes;
use crate::{Error, mark};

/// Probes of a step of the search where many heads come in hardly more time than one ...
const GRID_MAX: u64 = 64;
/// ... and while the ring is so large that it needs several steps.
const GRID_MIN: u64 = 15;
/// Slots of a longer stretch that says nothing that are looked at: it is a hole. On the first lap,
/// where such a stretch is the rule, all of it is.
const LOOKED_AT_MAX: u64 = 768;
/// Places all over a lap where a head is looked for when a hole takes most of it.
const PLACES_OF_A_LAP: u64 = 256;
/// Heads of a run of slots that are asked for at once.
const COLLECTED_AT_ONCE: usize = 256;

/// The newest head, and the watermark that the heads around it prove.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Newest {
    /// Highest sequence on the ring, readable or not.
    pub sequence: Sequence,
    /// Highest sequence in the heads that were read.
    pub seen: Sequence,
    /// First part of the newest INDEX, as that head knows it.
    pub index: StripeId,
    /// Highest watermark in the heads that were read, and in the superblocks.
    pub acknowledged: StripeId,
    /// Highest epoch in them.
    pub epoch: Epoch,
    /// The search did not suffice and the first head of every slot was read.
    pub scanned_all: bool,
}

/// What is known before the first head is read, from the superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// The newest epoch that a mount at hand has prepared; 0: nothing but superblocks was ever
    /// written.
    pub prepared_epoch: Epoch,
    /// W of the writer.
    pub(crate) window: u16,
    /// The ring surely came to here, as the superblocks say it; 0 before the first.
    pub(crate) reached: Sequence,
    /// And no further than to here; 0: nothing says so.
    pub(crate) until: Sequence,
    /// Everything up to here was acknowledged.
    pub(crate) marked: StripeId,
    /// The ring ends where it surely came to: the last writer stopped there in order.
    pub is_stopped: bool,
    /// Heads of later epochs do not count for the watermark: their mount has shown nothing yet.
    pub(crate) settled_epoch: Epoch,
    /// Sequence of its EPOCH stripe, which is acknowledged with everything before; 0: not known.
    pub(crate) settled_start: Sequence,
}

impl Known {
    /// What the search may take from the superblocks.
    pub fn of(membership: &Membership) -> Self {
        let superblock = membership.superblock();
        let settled = membership.settled();
        Self {
            prepared_epoch: membership.prepared_epoch(),
            window: superblock.window,
            reached: mark::reached(superblock),
            until: superblock.mark.until,
            marked: superblock.mark.acknowledged,
            is_stopped: mark::is_stopped(superblock, membership.prepared_epoch()),
            settled_epoch: settled.epoch,
            settled_start: settled.start,
        }
    }
}

/// How a stretch that says nothing is looked at, behind which the ring may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// By a mount, which writes over what it does not find.
    EverySlot,
    /// By a reader, of which there may be many a second.
    OneOfAFew,
}

/// Searches by first heads alone: enough for a reader. `None`: nothing was ever written.
pub fn newest(heads: &Heads<'_>, known: Known, care: Care) -> Result<Option<Newest>, Error> {
    if known.prepared_epoch == Epoch::NONE {
        return Ok(None);
    }
    if let Some(found) = behind_reached(heads, known, care) {
        return Ok(Some(found));
    }
    let plausible = |found: &Newest| {
        found.seen >= known.reached && found.acknowledged.sequence <= found.sequence
    };
    if let Some(found) = by_bisection(heads, known).filter(plausible) {
        return Ok(Some(found));
    }
    if known.reached == Sequence(0) && anchor(heads, known).is_none() {
        // No epoch was ever joined: whatever was written lies in the first slots.
        return Ok(None);
    }
    let found = scan(heads, known);
    match &found {
        None if known.reached > Sequence(0) => Err(Error::Inconsistent {
            slot: heads.geometry().slot(known.reached),
            reason: "an epoch was joined, but no head is readable",
        }),
        _ => Ok(found),
    }
}

/// Looks between what the ring surely reached and how far it may have come. `None`: the superblocks
/// do not say, or not of this ring.
fn behind_reached(heads: &Heads<'_>, known: Known, care: Care) -> Option<Newest> {
    let (reach, end) = (2 * u64::from(known.window), known.until.max(known.reached) + 1);
    if known.until == Sequence(0) || known.reached == Sequence(0) {
        return None;
    }
    // After an orderly stop nothing is behind.
    let high = if known.is_stopped { known.reached + 1 } else { end };
    let (low, high) = narrowed(heads, (known.reached, high), reach);
    let first = low.saturating_sub(reach);
    let stride = match care {
        Care::EverySlot => 1,
        Care::OneOfAFew => (reach / 8).max(1),
    };
    let stride = if high - low > mark::FIRST_LAP_AHEAD_MAX + 1 {
        stride.max((high - low).div_ceil(LOOKED_AT_MAX))
    } else {
        stride
    };
    let far = (low + reach..high + reach).each();
    let strided = far.step_by(usize::try_from(stride).unwrap_or(usize::MAX));
    let looked_at = (first..low + reach).each().chain(strided);
    let found = collect_near(heads, looked_at, known);
    let Some(found) = found.filter(|found| found.seen >= first) else {
        return before_hole(heads, known, first);
    };
    if found.seen >= end + reach {
        // These superblocks are of an older image, or of a writer that promised nothing.
        return None;
    }
    if stride == 1 || found.seen < low + reach {
        return Some(found);
    }
    collect_near(heads, (found.seen - reach..found.seen + stride + reach).each(), known)
}

/// Between the first, which was written, and the second, which was not: places in the ring that are
/// closer together, as far as readable heads bring them. Most between them may say nothing.
fn narrowed(
    heads: &Heads<'_>,
    (low, high): (Sequence, Sequence),
    reach: u64,
) -> (Sequence, Sequence) {
    let (mut low, mut high) = (low, high);
    loop {
        let before = high - low;
        if before <= reach {
            return (low, high);
        }
        let places = between(low, high, GRID_MIN.min(before - 1));
        heads.expect_firsts(&places);
        for sequence in places {
            match heads.first_of_slot(heads.geometry().slot(sequence)) {
                Some(head) if head.stripe.stripe.sequence >= sequence => low = sequence,
                Some(_) => {
                    high = sequence;
                    break;
                }
                None => {}
            }
        }
        if high - low > before / 2 {
            return (low, high);
        }
    }
}

/// Where `end` and what lies around it say nothing: the newest heads before. They say where the
/// newest INDEX is; the end of the ring is known by the superblocks.
fn before_hole(heads: &Heads<'_>, known: Known, end: Sequence) -> Option<Newest> {
    let geometry = heads.geometry();
    let is_there = |sequence: Sequence| {
        let head = heads.first_of_slot(geometry.slot(sequence));
        head.is_some_and(|head| head.stripe.stripe.sequence == sequence)
    };
    let lap = end.saturating_sub(geometry.slots).max(geometry.first_sequence());
    let distances = (0..64).map(|power| 1 << power).map_while(|distance| end.checked_sub(distance));
    let near = distances.take_while(|&sequence| sequence >= lap).find(|&at| is_there(at));
    // A hole of more than half of the ring leaves the rest between two of these distances.
    let mut there = near.or_else(|| {
        let places = between(lap, end, PLACES_OF_A_LAP.min(end.since(lap)));
        heads.expect_firsts(&places);
        places.into_iter().rev().find(|&at| is_there(at))
    })?;
    let mut hidden = there + (end - there) / 2;
    while hidden - there > 1 {
        let middle = there + (hidden - there) / 2;
        *(if is_there(middle) { &mut there } else { &mut hidden }) = middle;
    }
    let reach = 2 * u64::from(known.window);
    collect_near(heads, (there.saturating_sub(reach)..there + reach).each(), known)
}

/// Searches for a mount: in the slots around `newest` the heads in all rows count, because writes
/// land in any order and a slot's second stripe may have arrived without its first.
///
/// The slots ahead are not read where the newest head is that of an orderly stop and no mount has
/// prepared an epoch since: that writer had nothing under way, and its own mount began above every
/// head that it found.
pub fn newest_in_all_rows(heads: &Heads<'_>, known: Known, newest: Newest) -> Newest {
    let window = u64::from(known.window);
    let first = newest.sequence.saturating_sub(2 * window);
    let ahead = (newest.sequence + 1..=newest.sequence + window).each();
    let looked_at = (first..=newest.sequence).each();
    let mut all = InAllRows { heads, known, until: newest.sequence, newest, last: None };
    heads.expect_firsts(&looked_at.clone().collect::<Vec<_>>());
    looked_at.for_each(|sequence| all.slot(sequence));
    if !all.ends_in_order() {
        ahead.for_each(|sequence| all.slot(sequence));
    }
    all.newest
}

/// The heads in all rows of some slots.
struct InAllRows<'a> {
    heads: &'a Heads<'a>,
    known: Known,
    /// The search by first heads knows the ring up to here.
    until: Sequence,
    newest: Newest,
    /// The highest head of all.
    last: Option<Head>,
}

impl InAllRows<'_> {
    fn slot(&mut self, sequence: Sequence) {
        let geometry = self.heads.geometry();
        let slot = geometry.slot(sequence);
        let full = |head: &Head| head.stripe.rows + 1 == geometry.rows_per_slot();
        if sequence <= self.until
            && self
                .heads
                .first_of_slot(slot)
                .is_some_and(|head| head.stripe.stripe.sequence == sequence && full(&head))
        {
            // One stripe takes the whole slot, and the search has seen its head.
            return;
        }
        let bytes = SlotBytes::read(self.heads, sequence);
        for member in self.heads.membership().present() {
            for head in self.heads.all_in_slot(member, slot, bytes.of(member)) {
                self.newest = self.newest.clone().with(&head, self.known);
                let last = self.last.as_ref().map(|last| last.stripe.stripe);
                if last < Some(head.stripe.stripe) {
                    self.last = Some(head);
                }
            }
        }
    }

    fn ends_in_order(&self) -> bool {
        let Known { prepared_epoch, settled_epoch, .. } = self.known;
        self.last.as_ref().is_some_and(|last| {
            let is_of_last_mount =
                last.stripe.epoch == prepared_epoch && last.stripe.epoch == settled_epoch;
            let is_newest = last.stripe.stripe.sequence == self.newest.sequence;
            last.stripe.clean_stop && is_of_last_mount && is_newest && self.heads.is_agreed(last)
        })
    }
}

impl Newest {
    /// As the writer of `epoch` knows it, without a search.
    pub fn of_writer(acknowledged: StripeId, epoch: Epoch) -> Self {
        let (sequence, index) = (acknowledged.sequence, StripeId::default());
        Self { sequence, seen: sequence, index, acknowledged, epoch, scanned_all: false }
    }

    fn with(self, head: &Head, known: Known) -> Self {
        let stripe = &head.stripe;
        let counts = stripe.epoch <= known.settled_epoch;
        let acknowledged = if counts { stripe.acknowledged } else { StripeId::default() };
        let seen = stripe.stripe.sequence;
        Self {
            sequence: self.sequence.max(seen),
            seen: self.seen.max(seen),
            index: match seen.cmp(&self.seen) {
                Ordering::Greater => stripe.index,
                Ordering::Equal => self.index.max(stripe.index),
                Ordering::Less => self.index,
            },
            acknowledged: self.acknowledged.max(acknowledged),
            epoch: self.epoch.max(stripe.epoch),
            ..self
        }
    }
}

/// The first readable head near the start of the ring.
fn anchor(heads: &Heads<'_>, known: Known) -> Option<Head> {
    let reach = (4 * u64::from(known.window)).min(heads.geometry().slots);
    (0..reach).find_map(|slot| heads.first_of_slot(SlotNumber(slot)))
}

/// The binary search and the window around its answer; `None` also when it was led astray.
fn by_bisection(heads: &Heads<'_>, known: Known) -> Option<Newest> {
    let slots = heads.geometry().slots;
    let window = u64::from(known.window);
    let reach = (2 * window).min(slots);
    let slot_of = |head: &Head| heads.geometry().slot(head.stripe.stripe.sequence);
    let lap = |head: &Head| head.stripe.stripe.sequence.get() / slots;
    let anchor = anchor(heads, known)?;
    let anchor_lap = lap(&anchor);
    let (mut low, mut high) = (slot_of(&anchor), SlotNumber(slots));
    while high - low > 1 {
        let grid = grid(low, high, heads.reads_ahead());
        heads.expect(&grid);
        let mut unreadable = None;
        for slot in grid {
            match heads.first_of_slot(slot) {
                Some(head) if lap(&head) >= anchor_lap => (low, unreadable) = (slot, None),
                Some(_) => {
                    high = slot;
                    break;
                }
                None => unreadable = unreadable.or(Some(slot)),
            }
        }
        // The first behind the newest lap so far that says nothing.
        let Some(middle) = unreadable else { continue };
        match nearest(heads, middle, low..high, window) {
            Some(head) if lap(&head) >= anchor_lap => low = low.max(slot_of(&head)),
            Some(head) => high = high.min(slot_of(&head)),
            // On later laps an unreadable stretch longer than the window around the answer, which
            // is looked at in the end, hides it. Shorter ones are torn or discarded, and on the
            // first lap nothing is written there.
            None if anchor_lap > 1 && high - low > reach => return None,
            None => high = middle,
        }
    }
    let first = low.get() + slots - reach.min(slots - 1);
    let around = (first..=first + 2 * reach).map(|slot| SlotNumber(slot % slots));
    let newest = collect(heads, around, known, false)?;
    let bisected = Sequence(anchor_lap * slots + low.get());
    (newest.seen <= bisected + window).then_some(newest)
}

/// A readable first head near `middle`, which has none, and inside `range`. A crash tears at most
/// `window` slots in a row, so a few probes further apart than that see past it.
fn nearest(
    heads: &Heads<'_>,
    middle: SlotNumber,
    range: Range<SlotNumber>,
    window: u64,
) -> Option<Head> {
    let steps = [1, window, window + 1, 2 * window];
    let behind = steps.iter().map(|step| Some(middle + *step));
    let before = steps.iter().map(|step| middle.checked_sub(*step));
    let places = behind.chain(before).flatten();
    let places: Vec<SlotNumber> =
        places.filter(|slot| range.contains(slot) && *slot > range.start).collect();
    heads.expect(&places);
    places.into_iter().find_map(|slot| heads.first_of_slot(slot))
}

/// Slots between `low` and `high`, evenly spread: the middle, or as many as may be read at once.
fn grid(low: SlotNumber, high: SlotNumber, reads_ahead: bool) -> Vec<SlotNumber> {
    let most = match high - low {
        _ if !reads_ahead => 1,
        // A hard disk pays for every probe.
        between if between > GRID_MAX * GRID_MAX => GRID_MIN,
        between => GRID_MAX.min(between - 1),
    };
    spread(low.get(), high.get(), most).map(SlotNumber).collect()
}

/// So many sequences between `low` and `high`.
fn between(low: Sequence, high: Sequence, count: u64) -> Vec<Sequence> {
    spread(low.get(), high.get(), count).map(Sequence).collect()
}

/// So many places between `low` and `high`.
fn spread(low: u64, high: u64, count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(move |step| low + (high - low) * step / (count + 1))
}

/// The first heads of all slots.
pub(crate) fn scan(heads: &Heads<'_>, known: Known) -> Option<Newest> {
    collect(heads, heads.geometry().all_slots(), known, true)
}

/// The first heads of the slots of these sequences.
fn collect_near(
    heads: &Heads<'_>,
    sequences: impl Iterator<Item = Sequence>,
    known: Known,
) -> Option<Newest> {
    collect(heads, sequences.map(|sequence| heads.geometry().slot(sequence)), known, false)
}

fn collect(
    heads: &Heads<'_>,
    slots: impl Iterator<Item = SlotNumber>,
    known: Known,
    scanned_all: bool,
) -> Option<Newest> {
    let settled = StripeId { sequence: known.settled_start, sub: 0 };
    let acknowledged = known.marked.max(settled);
    let index = StripeId::default();
    let sequence = known.reached;
    let (seen, epoch) = (Sequence(0), Epoch::NONE);
    let none = Newest { sequence, seen, index, acknowledged, epoch, scanned_all };
    let lap = usize::try_from(heads.geometry().slots).unwrap_or(usize::MAX);
    let mut slots = slots.take(lap).peekable();
    let mut newest: Option<Newest> = None;
    while slots.peek().is_some() {
        let part: Vec<SlotNumber> = slots.by_ref().take(COLLECTED_AT_ONCE).collect();
        heads.expect(&part);
        for head in part.into_iter().filter_map(|slot| heads.first_of_slot(slot)) {
            newest = Some(newest.unwrap_or_else(|| none.clone()).with(&head, known));
        }
    }
    newest
}
