//! Segments that came before the bytes in front of them, held until those are there.
//!
//! Only what may belong to a message is held: segments ahead of a message that is being collected,
//! or near the beginning of a stream. Held bytes are bounded for each session and, through the
//! budget, for all of them.

use crate::Budget;
use crate::payload::Segment;
use crate::side::Side;

/// Payload held for one session, both sides together.
const HELD_BYTES_MAX: usize = 16 << 10;

/// Segments held for one session.
const HELD_COUNT_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Held {
    side: Side,
    pub(crate) start: u32,
    pub(crate) payload: Box<[u8]>,
    is_truncated: bool,
}

impl Held {
    /// The segment again; time and ports are those of the one that it waited for.
    pub(crate) fn like<'a>(&'a self, waited_for: &Segment<'_>) -> Segment<'a> {
        Segment {
            side: self.side,
            time_ns: waited_for.time_ns,
            start: self.start,
            payload: &self.payload,
            is_truncated: self.is_truncated,
            is_ahead: false,
            ports: waited_for.ports,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Reorder {
    held: Vec<Held>,
}

impl Reorder {
    /// Bytes of memory for the places of what is held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Holds a copy of the segment; false when there is no space for it.
    pub(crate) fn hold(&mut self, segment: &Segment<'_>, budget: &mut Budget) -> bool {
        let bytes: usize = self.held.iter().map(|held| held.payload.len()).sum();
        let len = segment.payload.len();
        if self.held.len() == HELD_COUNT_MAX
            || bytes + len > HELD_BYTES_MAX
            || !budget.heads.take(len)
        {
            return false;
        }
        let Segment { side, start, is_truncated, .. } = *segment;
        self.held.push(Held { side, start, payload: segment.payload.into(), is_truncated });
        true
    }

    /// Takes out the first segment of `side`, if it begins at `next` or before.
    pub(crate) fn release(&mut self, side: Side, next: u32, budget: &mut Budget) -> Option<Held> {
        let ahead = |held: &Held| held.start.wrapping_sub(next).cast_signed();
        let mine = self.held.iter().enumerate().filter(|(_, held)| held.side == side);
        let (at, _) =
            mine.min_by_key(|(_, held)| ahead(held)).filter(|(_, held)| ahead(held) <= 0)?;
        let held = self.held.swap_remove(at);
        budget.heads.give(held.payload.len());
        Some(held)
    }

    /// Gives up what still waits: what lies between was never seen, so it begins nowhere.
    pub(crate) fn clear(&mut self, budget: &mut Budget) {
        for held in self.held.drain(..) {
            budget.heads.give(held.payload.len());
        }
    }
}
