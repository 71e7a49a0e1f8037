//! The pieces that hold the packets of each open slice: lists in one vector, so that most packets
//! add to a list without touching it or the allocator.

use format::slice::PieceId;

/// No link has this number.
const NIL: u32 = u32::MAX;

/// Lists walked side by side by [`Pieces::warm`]: about as many as a core waits for at once.
pub(crate) const WARM_COUNT: usize = 16;

/// A piece in a list, or a free link. Small: the lists of a segment should fit the cache.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Place of the piece in `entered`.
    piece: u32,
    /// The link of the piece before, or of the next free one.
    previous: u32,
}

/// The lists, and the piece that packets come from at present.
#[derive(Debug)]
pub(crate) struct Pieces {
    links: Vec<Link>,
    free: u32,
    /// Pieces that packets came from since all lists were empty; the last is the present one.
    entered: Vec<PieceId>,
    /// Counts changes of the present piece; 0 is no piece.
    number: u32,
    /// Pieces have ascended from this number on.
    ascending_since: u32,
    /// For lists on their way out.
    scratch: Vec<u32>,
}

/// The pieces of one slice, ascending, and the bounds of its packets in the first and last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Link of the last piece.
    last: u32,
    /// Number of the last piece, if the last packet lay there; else 0.
    number: u32,
    pub(crate) first_ordinal: u32,
    pub(crate) last_ordinal: u32,
}

impl Places {
    pub(crate) const NONE: Self = Self { last: NIL, number: 0, first_ordinal: 0, last_ordinal: 0 };

    /// The numbers of pieces have begun anew.
    pub(crate) fn forget_number(&mut self) {
        self.number = 0;
    }
}

impl Pieces {
    pub(crate) fn new() -> Self {
        Self {
            links: Vec::new(),
            free: NIL,
            entered: Vec::new(),
            number: 0,
            ascending_since: 1,
            scratch: Vec::new(),
        }
    }

    /// Packets come from `piece` from here on. False when the numbers of pieces have begun anew and
    /// those in all places mean nothing any more.
    #[must_use]
    pub(crate) fn enter(&mut self, piece: PieceId) -> bool {
        let present = self.entered.last();
        if present == Some(&piece) {
            return true;
        }
        let next = self.number.checked_add(1);
        self.number = next.unwrap_or(1);
        if next.is_none() || present.is_some_and(|present| *present > piece) {
            self.ascending_since = self.number;
        }
        self.entered.push(piece);
        next.is_some()
    }

    /// Notes a packet of the present piece.
    #[inline]
    pub(crate) fn note(&mut self, places: &mut Places, ordinal: u32) {
        if places.number == self.number {
            places.last_ordinal = ordinal;
            return;
        }
        if places.last == NIL {
            places.first_ordinal = ordinal;
        } else if places.number < self.ascending_since {
            self.note_anywhere(places, ordinal);
            return;
        }
        self.push(places, self.present());
        (places.number, places.last_ordinal) = (self.number, ordinal);
    }

    /// The same where the present piece may lie before the list's last one.
    #[cold]
    fn note_anywhere(&mut self, places: &mut Places, ordinal: u32) {
        let present = self.present();
        let piece = self.piece(present);
        self.drain(places);
        let mut numbers: Vec<u32> = self.scratch.iter().rev().copied().collect();
        let mut pieces: Vec<PieceId> = numbers.iter().map(|&number| self.piece(number)).collect();
        let (first, last) = (pieces.first().copied(), pieces.last().copied());
        if first.is_none_or(|first| (piece, ordinal) < (first, places.first_ordinal)) {
            places.first_ordinal = ordinal;
        }
        if last.is_none_or(|last| (piece, ordinal) >= (last, places.last_ordinal)) {
            places.last_ordinal = ordinal;
        }
        if let Err(at) = pieces.binary_search(&piece) {
            pieces.insert(at, piece);
            numbers.insert(at, present);
        }
        for number in numbers {
            self.push(places, number);
        }
        // Only in the last piece does the next packet's ordinal stand without a look here.
        places.number = if pieces.last() == Some(&piece) { self.number } else { 0 };
    }

    /// Place of the present piece in `entered`.
    fn present(&self) -> u32 {
        let present = self.entered.len().checked_sub(1).expect("a piece was entered");
        u32::try_from(present).expect("pieces of a segment have 32-bit numbers")
    }

    fn piece(&self, number: u32) -> PieceId {
        *self.entered.get(index(number)).expect("only entered pieces are noted")
    }

    fn push(&mut self, places: &mut Places, piece: u32) {
        let link = Link { piece, previous: places.last };
        if let Some(free) = self.links.get_mut(index(self.free)) {
            places.last = core::mem::replace(&mut self.free, free.previous);
            *free = link;
        } else {
            places.last = u32::try_from(self.links.len()).expect("links have 32-bit numbers");
            self.links.push(link);
        }
    }

    /// All lists are empty: their links begin anew, side by side. The present piece stays.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
        self.free = NIL;
        let before = self.entered.len().saturating_sub(1);
        self.entered.drain(..before);
    }

    /// Walks some lists that are about to be taken, so that their memory is read. Each link says
    /// where the next one lies; side by side the lists are waited for at once.
    pub(crate) fn warm<'a>(&self, lists: impl Iterator<Item = &'a Places>) {
        let mut ats = [NIL; WARM_COUNT];
        for (at, places) in ats.iter_mut().zip(lists) {
            *at = places.last;
        }
        let mut is_any = true;
        while is_any {
            is_any = false;
            for at in &mut ats {
                if let Some(link) = self.links.get(index(*at)) {
                    *at = link.previous;
                    is_any = true;
                }
            }
        }
    }

    /// The pieces, ascending; the list is empty then, and the ordinals stay.
    pub(crate) fn take(&mut self, places: &mut Places) -> Vec<PieceId> {
        self.drain(places);
        self.scratch.iter().rev().map(|&number| self.piece(number)).collect()
    }

    /// Moves the list's numbers of pieces into `scratch`, the last one first.
    fn drain(&mut self, places: &mut Places) {
        self.scratch.clear();
        let mut at = places.last;
        while let Some(link) = self.links.get_mut(index(at)) {
            self.scratch.push(link.piece);
            let free = core::mem::replace(&mut self.free, at);
            at = core::mem::replace(&mut link.previous, free);
        }
        (places.last, places.number) = (NIL, 0);
    }
}

/// NIL lies beyond every vector, so it has no link.
fn index(link: u32) -> usize {
    usize::try_from(link).expect("32 bits fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn lists_are_the_pieces_in_order_whatever_the_order_they_came_in(
            // Sessions and pieces; usually the next piece, sometimes any.
            notes in prop::collection::vec(
                (0_usize..4, prop::option::weighted(0.2, 0_u64..12)),
                0..80,
            ),
            start in prop_oneof![Just(0), Just(u32::MAX - 5)],
        ) {
            let mut pieces = Pieces { number: start, ..Pieces::new() };
            let mut sessions = vec![(Places::NONE, BTreeSet::new()); 4];
            let mut sequence = 0;
            for (ordinal, (session, piece)) in (0..).zip(notes) {
                sequence = piece.unwrap_or(sequence + u64::from(ordinal % 3 == 0));
                let piece = PieceId { sequence, sub: 0, column: 0 };
                if !pieces.enter(piece) {
                    for (places, _) in &mut sessions {
                        places.forget_number();
                    }
                }
                let (places, seen) = &mut sessions[session];
                pieces.note(places, ordinal);
                seen.insert((piece, ordinal));
            }
            for (mut places, seen) in sessions {
                let distinct: BTreeSet<_> = seen.iter().map(|&(piece, _)| piece).collect();
                prop_assert_eq!(pieces.take(&mut places), Vec::from_iter(distinct));
                let first = seen.first().map_or(0, |&(_, ordinal)| ordinal);
                let last = seen.last().map_or(0, |&(_, ordinal)| ordinal);
                prop_assert_eq!((places.first_ordinal, places.last_ordinal), (first, last));
            }
            // Every link is free again.
            let (mut at, mut free) = (pieces.free, 0);
            while let Some(link) = pieces.links.get(index(at)) {
                (at, free) = (link.previous, free + 1);
            }
            prop_assert_eq!(free, pieces.links.len());
        }
    }
}
