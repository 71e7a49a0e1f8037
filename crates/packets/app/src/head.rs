//! The beginning of a message that spans segments, put together in order.

use crate::Budget;

/// Bytes of one head.
const HEAD_LEN_MAX: usize = 16 << 10;

/// Segments of one head; bounds the work of a sender of tiny ones.
const SEGMENT_COUNT_MAX: u8 = 64;

/// A head that has grown is read again so often; from then on when it has doubled, so that all
/// readings together cost a constant for each byte.
const READING_COUNT_MAX: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// More bytes are there, and are worth a look.
    Grown,
    /// Nothing new, or too little to look again.
    Waiting,
    /// No space, or bytes before these will not come.
    Full,
}

#[derive(Debug)]
pub(crate) struct Head<K> {
    pub(crate) kind: K,
    next: u32,
    bytes: Vec<u8>,
    segments: u8,
    readings: u8,
    /// Bytes that are there when it is read the next time.
    read_at: usize,
}

impl<K> Head<K> {
    /// Starts with `payload`, unless there is no space for it.
    pub(crate) fn begin(kind: K, start: u32, payload: &[u8], budget: &mut Budget) -> Option<Self> {
        let mut head =
            Self { kind, next: start, bytes: Vec::new(), segments: 0, readings: 0, read_at: 0 };
        (head.add(start, payload, budget) != Progress::Full).then_some(head)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sequence number of the byte after the last one.
    pub(crate) fn next_sequence(&self) -> u32 {
        self.next
    }

    /// Appends what lies beyond the bytes that are there.
    pub(crate) fn add(&mut self, start: u32, payload: &[u8], budget: &mut Budget) -> Progress {
        let known = self.next.wrapping_sub(start);
        if self.segments == SEGMENT_COUNT_MAX || known.cast_signed() < 0 {
            return Progress::Full;
        }
        self.segments += 1;
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let Some(fresh) = payload.get(known..).filter(|fresh| !fresh.is_empty()) else {
            return Progress::Waiting;
        };
        if self.bytes.len() + fresh.len() > HEAD_LEN_MAX || !budget.heads.take(fresh.len()) {
            return Progress::Full;
        }
        // No more space than was taken from the budget.
        self.bytes.reserve_exact(fresh.len());
        self.bytes.extend_from_slice(fresh);
        let len = u32::try_from(fresh.len()).expect("a head is at most 16 KiB");
        self.next = self.next.wrapping_add(len);
        if self.bytes.len() < self.read_at {
            return Progress::Waiting;
        }
        self.readings += 1;
        if self.readings >= READING_COUNT_MAX {
            self.read_at = self.bytes.len() * 2;
        }
        Progress::Grown
    }

    /// Gives the space back.
    pub(crate) fn free(self, budget: &mut Budget) {
        budget.heads.give(self.bytes.len());
    }
}
