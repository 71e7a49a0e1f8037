//! In which order all slots of a volume are read, so that their packets leave in the order of time.
//!
//! Slots are read as they lie in the ring while what has to wait is little: heads of a recording
//! claim up to when everything has come, and the directory says when later segments begin. Where
//! more has to wait, because queues differ much in rate, or because files overlap in time, the
//! heads of the next slots are read first, and slots are opened by their earliest packets. Then
//! what is held is no more than what overlaps at one moment.

use std::collections::{BTreeMap, BTreeSet};

use format::head::{Head, StripeId};
use units::{Sequence, Timestamp};

use crate::archive::{Archive, Part, is_data};
use crate::order::{Order, Placed, placed};
use crate::slots::Place;

/// Slots of which the heads are read at a time.
const LOOKED_AT: usize = 256;
/// Slots that are opened by time before what is held is looked at again.
const OPENED: usize = 256;

/// A recording says that later stripes of it have no earlier packet.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// First stripe of the stretch of recording.
    start: StripeId,
    after: Timestamp,
}

impl Claim {
    fn of(head: &Head) -> Option<Self> {
        let recorded = head.stripe.recorded.as_ref().filter(|recorded| recorded.is_live)?;
        // At the beginning nothing is claimed.
        let is_said = recorded.through > recorded.from;
        is_said.then(|| Self { start: recorded.start, after: recorded.through.plus_nanos(1) })
    }
}

/// The earliest packet of a slot by its heads; the smallest number where they do not say it.
pub(crate) fn earliest(archive: &Archive, sequence: Sequence, first: Option<&Head>) -> Timestamp {
    let time_min = |heads: &[Head]| {
        let data = heads.iter().filter(|head| is_data(head));
        data.map(|head| head.stripe.time_min).min()
    };
    let found = match first {
        None => None,
        Some(head) if archive.fills_slot(head) => time_min(core::slice::from_ref(head)),
        Some(_) => archive.reader.heads(sequence).and_then(|heads| time_min(&heads)),
    };
    found.unwrap_or(Timestamp::MIN)
}

/// What the directory knows of times.
struct Bounds {
    /// In ring order.
    parts: Vec<Placed>,
    /// From this stretch of recording on, the first part that does not end in it.
    end_of_stretch: Option<(StripeId, usize)>,
}

impl Bounds {
    fn new(archive: &mut Archive) -> Self {
        Self { parts: placed(archive.parts(), Order::OldestFirst), end_of_stretch: None }
    }

    /// No packet of this slot or a later one is earlier.
    fn bound(&mut self, archive: &Archive, sequence: Sequence, claim: Option<Claim>) -> Timestamp {
        let earliest = |parts: &[Placed], at: usize| {
            parts.get(at).map_or(Timestamp::MAX, |placed| placed.edge)
        };
        let at = self.parts.partition_point(|placed| placed.part.last.sequence < sequence);
        let by_directory = earliest(&self.parts, at);
        let Some(claim) = claim else { return by_directory };
        let end = self.end_of_stretch(archive, at, claim.start);
        by_directory.max(claim.after.min(earliest(&self.parts, end)))
    }

    /// The first part, from `at` on, whose last slot is of a later stretch than `start`.
    fn end_of_stretch(&mut self, archive: &Archive, at: usize, start: StripeId) -> usize {
        if let Some((known, end)) = self.end_of_stretch
            && known == start
        {
            return end.max(at);
        }
        let rest = self.parts.get(at..).unwrap_or_default();
        let is_within = |part: &Part| {
            let head = archive.reader.head(part.last.sequence);
            let recorded = head.and_then(|head| head.stripe.recorded);
            recorded.is_some_and(|recorded| recorded.start == start)
        };
        let end = at + rest.partition_point(|placed| is_within(&placed.part));
        self.end_of_stretch = Some((start, end));
        end
    }
}

/// Slots to be read next.
pub(crate) struct Batch {
    pub(crate) places: Vec<Place>,
    /// By sequence: no packet of the slot is earlier. Empty where slots are read in ring order.
    floors: BTreeMap<Sequence, Timestamp>,
    /// The piece that was met last.
    last: Option<(StripeId, Option<Claim>)>,
}

impl Batch {
    pub(crate) fn is_in_ring_order(&self) -> bool {
        self.floors.is_empty()
    }

    /// A piece with this head comes next; whether it is the first of its slot.
    pub(crate) fn is_new_slot(&self, head: &Head) -> bool {
        let sequence = head.stripe.stripe.sequence;
        self.last.is_none_or(|(stripe, _)| stripe.sequence != sequence)
    }
}

/// The slots that are still to be read.
pub(crate) struct Ahead {
    /// In ring order.
    places: Vec<Place>,
    /// Those in front were read, or their heads were.
    seen: usize,
    /// Of the latter the earliest time, and their places.
    known: BTreeSet<(Timestamp, usize)>,
    claim: Option<Claim>,
    bounds: Option<Bounds>,
}

impl Ahead {
    pub(crate) fn new(places: Vec<Place>) -> Self {
        Self { places, seen: 0, known: BTreeSet::new(), claim: None, bounds: None }
    }

    /// Learns what the directory knows of times, unless it is known.
    pub(crate) fn learn(&mut self, archive: &mut Archive) {
        self.bounds.get_or_insert_with(|| Bounds::new(archive));
    }

    /// No packet that was not read is earlier.
    pub(crate) fn floor(&mut self, archive: &Archive) -> Timestamp {
        let known = self.known.first().map_or(Timestamp::MAX, |(time, _)| *time);
        known.min(self.bound(archive))
    }

    /// The same of slots whose heads were not read either.
    fn bound(&mut self, archive: &Archive) -> Timestamp {
        let Some(place) = self.places.get(self.seen) else { return Timestamp::MAX };
        let bounds = self.bounds.as_mut();
        bounds.map_or(Timestamp::MIN, |it| it.bound(archive, place.sequence, self.claim))
    }

    /// The slots to be read next: in ring order where little is held, else by time.
    pub(crate) fn next(&mut self, archive: &Archive, is_much_held: bool) -> Option<Batch> {
        if self.known.is_empty() && !is_much_held {
            let places = self.places.get(self.seen..).filter(|places| !places.is_empty())?;
            return Some(Batch { places: places.to_vec(), floors: BTreeMap::new(), last: None });
        }
        let bound = loop {
            let bound = self.bound(archive);
            if self.known.first().is_some_and(|(time, _)| *time <= bound) {
                break bound;
            }
            if !self.look(archive) {
                break Timestamp::MAX;
            }
        };
        let (mut places, mut floors) = (Vec::new(), BTreeMap::new());
        while places.len() < OPENED
            && let Some(&(time, at)) = self.known.first()
            && time <= bound
        {
            self.known.pop_first();
            let place = *self.places.get(at).expect("slots that are known have their places");
            floors.insert(place.sequence, time);
            places.push(place);
        }
        (!places.is_empty()).then_some(Batch { places, floors, last: None })
    }

    /// Reads the heads of the next slots; false where there are none.
    fn look(&mut self, archive: &Archive) -> bool {
        let rest = self.places.get(self.seen..).unwrap_or_default();
        let next: Vec<Sequence> = rest.iter().take(LOOKED_AT).map(|place| place.sequence).collect();
        let heads = archive.reader.first_heads(&next);
        for (sequence, head) in next.iter().zip(&heads) {
            let time = earliest(archive, *sequence, head.as_ref());
            self.known.insert((time, self.seen));
            self.claim = head.as_ref().and_then(Claim::of);
            self.seen += 1;
        }
        !next.is_empty()
    }

    /// A piece comes that was read in ring order or by time; says where nothing earlier follows,
    /// this piece included, if that is more than was said before.
    pub(crate) fn comes(
        &mut self,
        archive: &Archive,
        batch: &mut Batch,
        head: &Head,
    ) -> Option<Timestamp> {
        let stripe = head.stripe.stripe;
        let is_new_slot = batch.is_new_slot(head);
        let before = batch.last.replace((stripe, Claim::of(head)));
        if !batch.is_in_ring_order() {
            return is_new_slot.then(|| batch.floors.get(&stripe.sequence).copied()).flatten();
        }
        if before.is_some_and(|(before, _)| before == stripe) {
            // A claim is about later stripes, not about later columns of its own.
            return None;
        }
        if let Some((_, claim)) = before {
            self.claim = claim;
        }
        if is_new_slot {
            let seen = |place: &Place| place.sequence < stripe.sequence;
            self.seen = self.places.partition_point(seen);
        }
        self.bounds.is_some().then(|| self.bound(archive))
    }

    /// All of a batch was read, but for slots from the one of `until` on.
    pub(crate) fn done(&mut self, batch: &Batch, until: Option<Sequence>) {
        if !batch.is_in_ring_order() {
            return;
        }
        if let Some(until) = until {
            // What came in front of it said its claim already.
            self.seen = self.places.partition_point(|place| place.sequence < until);
        } else {
            self.claim = batch.last.and_then(|(_, claim)| claim);
            self.seen = self.places.len();
        }
    }
}
