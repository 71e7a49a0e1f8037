//! The pieces that hold the packets of each open slice: lists in one vector, so that most packets
//! add to a list without touching it or the allocator.
//!
//! Where the last packet in a piece ends is known only when the next piece begins; it goes into the
//! link of that one, because the link before is seldom in the cache.

use format::session_row::{PieceId, PieceSpan};

/// No link has this number.
const NIL: u32 = u32::MAX;

/// Pieces of one list: a longer one makes a row at once, so that no packet has to wait for a list
/// to be written out that took many packets to grow; four may be due at a packet.
pub(crate) const PIECE_COUNT_MAX: u16 = 1024;

/// Links that are made space for, at least.
const LINKS_AT_ONCE: usize = 1024;

/// Lists walked side by side by [`Pieces::warm`]: about as many as a core waits for at once.
pub(crate) const WARM_COUNT: usize = 16;

/// A piece in a list, or a free link. Small: the lists of a segment should fit the cache.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Place of the piece in `entered`.
    piece: u32,
    /// The link of the piece before, or of the next free one.
    previous: u32,
    /// The first packet's block in the piece.
    begin: u32,
    /// End of the last packet's block in the piece before.
    previous_end: u32,
}

const _: () = assert!(size_of::<Link>() == 16);

/// A piece in a list on its way out.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Place of the piece in `entered`.
    piece: u32,
    begin: u32,
    end: u32,
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
    scratch: Vec<Taken>,
    /// Links that are in lists.
    used: usize,
    bounds: Bounds,
}

/// What the lists may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Links from which on a list begins anew instead of growing.
    pub(crate) links: usize,
    /// Pieces since all lists were empty.
    pub(crate) entered: usize,
}

impl Bounds {
    /// For lists of so many sessions within so many bytes. Each has space for one link, whatever
    /// the bytes are; an eighth is for the pieces themselves.
    pub(crate) fn new(bytes: usize, session_count: usize) -> Self {
        // Of vectors that grow by doubling, and by a fourth.
        let entered = (bytes / 8 / 2 / size_of::<PieceId>()).max(1);
        let links = (bytes - bytes / 8) / size_of::<Link>() / 5 * 4;
        Self { links: links.saturating_sub(session_count), entered }
    }

    /// Bytes that the lists take at most.
    pub(crate) fn memory_bytes_max(self, session_count: usize) -> usize {
        let links = (self.links + session_count) / 4 * 5 + LINKS_AT_ONCE;
        let entered = 2 * (self.entered + 2);
        let scratch = 2 * usize::from(PIECE_COUNT_MAX);
        let scratch = scratch * size_of::<Taken>();
        links * size_of::<Link>() + entered * size_of::<PieceId>() + scratch
    }
}

/// The pieces of one slice, ascending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Link of the last piece.
    last: u32,
    /// Number of the last piece, if the last packet lay there; else 0.
    number: u32,
    /// End of the last packet's block in the last piece.
    end: u32,
}

impl Places {
    pub(crate) const NONE: Self = Self { last: NIL, number: 0, end: 0 };

    /// The numbers of pieces have begun anew.
    pub(crate) fn forget_number(&mut self) {
        self.number = 0;
    }
}

impl Pieces {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            used: 0,
            links: Vec::new(),
            free: NIL,
            entered: Vec::new(),
            number: 0,
            ascending_since: 1,
            scratch: Vec::new(),
        }
    }

    /// So many pieces were entered that all lists should end before the next one is.
    pub(crate) fn is_full_for(&self, piece: PieceId) -> bool {
        self.entered.len() > self.bounds.entered && self.entered.last() != Some(&piece)
    }

    /// Whether a list should end before a packet of the present piece is noted: it has grown long,
    /// or all of them have.
    #[inline]
    pub(crate) fn should_end(&self, places: &Places, count: u16) -> bool {
        places.number != self.number
            && places.last != NIL
            && (count >= PIECE_COUNT_MAX || self.used >= self.bounds.links)
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

    /// Notes a packet of the present piece, whose block lies from the first to the second place.
    /// True when the list may be a piece longer.
    #[inline]
    pub(crate) fn note(&mut self, places: &mut Places, (begin, end): (u32, u32)) -> bool {
        if places.number == self.number {
            places.end = end;
            return false;
        }
        if places.last != NIL && places.number < self.ascending_since {
            self.note_anywhere(places, (begin, end));
            return true;
        }
        self.push(places, Taken { piece: self.present(), begin, end });
        places.number = self.number;
        true
    }

    /// The same where the present piece may lie before the list's last one.
    #[cold]
    fn note_anywhere(&mut self, places: &mut Places, (begin, end): (u32, u32)) {
        let present = Taken { piece: self.present(), begin, end };
        let piece = self.piece(present.piece);
        self.drain(places);
        let mut all: Vec<Taken> = self.scratch.iter().rev().copied().collect();
        match all.binary_search_by_key(&piece, |taken| self.piece(taken.piece)) {
            Ok(at) => {
                let known = all.get_mut(at).expect("it was found there");
                (known.begin, known.end) = (known.begin.min(begin), known.end.max(end));
            }
            Err(at) => all.insert(at, present),
        }
        // Only in the last piece does the next packet's end stand without a look here.
        let is_last = |last: &Taken| (self.piece(last.piece), last.end) == (piece, end);
        let number = if all.last().is_some_and(is_last) { self.number } else { 0 };
        for taken in all {
            self.push(places, taken);
        }
        places.number = number;
    }

    /// Place of the present piece in `entered`.
    fn present(&self) -> u32 {
        let present = self.entered.len().checked_sub(1).expect("a piece was entered");
        u32::try_from(present).expect("pieces of a segment have 32-bit numbers")
    }

    fn piece(&self, number: u32) -> PieceId {
        *self.entered.get(index(number)).expect("only entered pieces are noted")
    }

    fn push(&mut self, places: &mut Places, taken: Taken) {
        self.used += 1;
        let Taken { piece, begin, end } = taken;
        let link = Link { piece, previous: places.last, begin, previous_end: places.end };
        if let Some(free) = self.links.get_mut(index(self.free)) {
            places.last = core::mem::replace(&mut self.free, free.previous);
            *free = link;
        } else {
            places.last = u32::try_from(self.links.len()).expect("links have 32-bit numbers");
            if self.links.len() == self.links.capacity() {
                self.links.reserve_exact((self.links.len() / 4).max(LINKS_AT_ONCE));
            }
            self.links.push(link);
        }
        places.end = end;
    }

    /// All lists are empty: their links begin anew, side by side. The present piece stays.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
        self.used = 0;
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

    /// The pieces, ascending; the list is empty then.
    pub(crate) fn take(&mut self, places: &mut Places) -> Vec<PieceSpan> {
        self.drain(places);
        let span =
            |&Taken { piece, begin, end }| PieceSpan { piece: self.piece(piece), begin, end };
        self.scratch.iter().rev().map(span).collect()
    }

    /// Moves the list into `scratch`, the last piece first.
    fn drain(&mut self, places: &mut Places) {
        self.scratch.clear();
        let (mut at, mut end) = (places.last, places.end);
        while let Some(link) = self.links.get_mut(index(at)) {
            self.scratch.push(Taken { piece: link.piece, begin: link.begin, end });
            self.used -= 1;
            end = link.previous_end;
            let free = core::mem::replace(&mut self.free, at);
            at = core::mem::replace(&mut link.previous, free);
        }
        *places = Places::NONE;
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
    use std::collections::BTreeMap;
    use units::Sequence;

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
            let bounds = Bounds { links: usize::MAX, entered: usize::MAX };
            let mut pieces = Pieces { number: start, ..Pieces::new(bounds) };
            let mut sessions = vec![(Places::NONE, BTreeMap::new()); 4];
            let mut sequence = 0;
            for (begin, (session, piece)) in (0_u32..).step_by(4).zip(notes) {
                sequence = piece.unwrap_or(sequence + u64::from(begin % 3 == 0));
                let piece = PieceId { sequence: Sequence(sequence), sub: 0, column: 0 };
                if !pieces.enter(piece) {
                    for (places, _) in &mut sessions {
                        places.forget_number();
                    }
                }
                let (places, seen) = &mut sessions[session];
                let end = begin + 4;
                pieces.note(places, (begin, end));
                let span = seen.entry(piece).or_insert(PieceSpan { piece, begin, end });
                span.end = end;
            }
            for (mut places, seen) in sessions {
                prop_assert_eq!(pieces.take(&mut places), seen.into_values().collect::<Vec<_>>());
            }
            prop_assert_eq!(pieces.used, 0);
            // Every link is free again.
            let (mut at, mut free) = (pieces.free, 0);
            while let Some(link) = pieces.links.get(index(at)) {
                (at, free) = (link.previous, free + 1);
            }
            prop_assert_eq!(free, pieces.links.len());
        }
    }
}
