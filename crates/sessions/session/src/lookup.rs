//! Slots by hash: open addressing with linear probing, eight bytes a place, at most half full, so
//! that most lookups read one cache line. Keys lie with the sessions; the caller compares them.

/// Places of an empty table. A power of two.
const PLACE_COUNT_MIN: usize = 16;

/// No slot has this number.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The low half of the hash; its low bits say where the place should be.
    tag: u32,
    slot: u32,
}

#[derive(Debug)]
pub(crate) struct Lookup {
    /// A power of two of them.
    places: Vec<Place>,
    count: usize,
}

/// The half of the hash that is kept.
fn tag(hash: u64) -> u32 {
    u32::try_from(hash & u64::from(u32::MAX)).expect("32 bits")
}

fn wide(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit")
}

impl Lookup {
    pub(crate) fn new() -> Self {
        Self { places: vec![Place { tag: 0, slot: FREE }; PLACE_COUNT_MIN], count: 0 }
    }

    /// Bytes that each slot of a full table needs at most, also while the table grows: at least a
    /// fourth of the places is taken then, and there are half as many of before.
    pub(crate) const fn session_bytes_max() -> usize {
        6 * size_of::<Place>()
    }

    /// Slots in the table.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    #[inline]
    fn place(&self, at: usize) -> Place {
        *self.places.get(at).expect("masked")
    }

    fn put(&mut self, at: usize, place: Place) {
        *self.places.get_mut(at).expect("masked") = place;
    }

    /// Something of the place where a lookup begins, so that its memory is read.
    #[inline]
    pub(crate) fn warm(&self, hash: u64) -> u32 {
        self.place(wide(tag(hash)) & self.mask()).slot
    }

    /// The place and slot of this hash that the caller recognises.
    #[inline]
    fn locate(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let (tag, mask) = (tag(hash), self.mask());
        let mut at = wide(tag) & mask;
        loop {
            let place = self.place(at);
            if place.slot == FREE {
                return None;
            }
            if place.tag == tag && is_it(place.slot) {
                return Some((at, place.slot));
            }
            at = (at + 1) & mask;
        }
    }

    /// The slot of this hash that the caller recognises as the one it looks for.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.locate(hash, is_it).map(|(_, slot)| slot)
    }

    /// Adds a slot that is not in the table; says how many places it lies from where it should be.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) -> usize {
        assert!(slot != FREE, "slots have smaller numbers");
        if (self.count + 1) * 2 > self.places.len() {
            self.grow();
        }
        self.count += 1;
        self.settle(Place { tag: tag(hash), slot })
    }

    fn settle(&mut self, place: Place) -> usize {
        let mask = self.mask();
        let mut at = wide(place.tag) & mask;
        let mut passed = 0;
        while self.place(at).slot != FREE {
            at = (at + 1) & mask;
            passed += 1;
        }
        self.put(at, place);
        passed
    }

    /// Places all slots anew, by other hashes.
    pub(crate) fn place_anew(&mut self, slots: impl Iterator<Item = (u64, u32)>) {
        self.places.fill(Place { tag: 0, slot: FREE });
        let mut count = 0;
        for (hash, slot) in slots {
            self.settle(Place { tag: tag(hash), slot });
            count += 1;
        }
        assert!(count == self.count, "the same slots are in the table");
    }

    /// Places of the longest stretch without a free one: as many as a lookup passes at most.
    #[cfg(test)]
    pub(crate) fn longest_stretch(&self) -> usize {
        let stretches = self.places.split(|place| place.slot == FREE);
        stretches.map(<[Place]>::len).max().unwrap_or(0)
    }

    fn grow(&mut self) {
        let larger = vec![Place { tag: 0, slot: FREE }; self.places.len() * 2];
        for place in core::mem::replace(&mut self.places, larger) {
            if place.slot != FREE {
                self.settle(place);
            }
        }
    }

    /// Removes a slot, and moves up those behind it that the gap would hide.
    ///
    /// # Panics
    /// When it is not in the table.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        let found = self.locate(hash, |other| other == slot);
        let (mut gap, _) = found.expect("a live session is in the table");
        let mask = self.mask();
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let place = self.place(at);
            if place.slot == FREE {
                break;
            }
            let home = wide(place.tag) & mask;
            // The gap lies between where the place should be and where it is.
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.put(gap, place);
                gap = at;
            }
        }
        self.put(gap, Place { tag: 0, slot: FREE });
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_holds_what_a_set_holds(
            ops in prop::collection::vec((any::<bool>(), 0_u32..60), 0..300),
            spread in prop_oneof![Just(0_u64), Just(1), Just(7), Just(0x9e37_79b9_7f4a_7c15)],
        ) {
            // Few hashes, so that many share one or lie side by side, the last places included.
            let hash = |slot: u32| u64::from(slot / 2).wrapping_mul(spread).wrapping_sub(3);
            let (mut lookup, mut set) = (Lookup::new(), BTreeSet::new());
            for (is_insert, slot) in ops {
                if is_insert && set.insert(slot) {
                    lookup.insert(hash(slot), slot);
                } else if !is_insert && set.remove(&slot) {
                    lookup.remove(hash(slot), slot);
                }
                prop_assert_eq!(lookup.len(), set.len());
                for slot in 0..60 {
                    let found = lookup.find(hash(slot), |other| other == slot);
                    prop_assert_eq!(found.is_some(), set.contains(&slot));
                }
            }
        }
    }
}
