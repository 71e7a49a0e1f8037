//! The beginning of a message that spans segments, put together in order.

/// Bytes of one head.
const HEAD_LEN_MAX: usize = 16 << 10;

/// Segments of one head; bounds the work of a sender of tiny ones.
const SEGMENT_COUNT_MAX: u8 = 64;

/// The room that all messages in parts share, over all sessions of a table.
#[derive(Debug)]
pub struct Budget {
    /// Bytes that may still be taken.
    pub free_bytes: usize,
    /// Messages and segments given up because there was no room.
    pub refused: u64,
}

impl Budget {
    /// Takes room for so many bytes; false, and counted, when there is none.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let rest = self.free_bytes.checked_sub(bytes);
        self.refused += u64::from(rest.is_none());
        self.free_bytes = rest.unwrap_or(self.free_bytes);
        rest.is_some()
    }

    pub(crate) fn give(&mut self, bytes: usize) {
        self.free_bytes += bytes;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// More bytes are there.
    Grown,
    /// Nothing new.
    Waiting,
    /// No room, or bytes before these will not come.
    Full,
}

#[derive(Debug)]
pub(crate) struct Head<K> {
    pub(crate) kind: K,
    next: u32,
    bytes: Vec<u8>,
    segments: u8,
}

impl<K> Head<K> {
    /// Starts with `payload`, unless there is no room for it.
    pub(crate) fn begin(kind: K, start: u32, payload: &[u8], budget: &mut Budget) -> Option<Self> {
        let mut head = Self { kind, next: start, bytes: Vec::new(), segments: 0 };
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
        if self.bytes.len() + fresh.len() > HEAD_LEN_MAX || !budget.take(fresh.len()) {
            return Progress::Full;
        }
        self.bytes.extend_from_slice(fresh);
        let len = u32::try_from(fresh.len()).expect("a head is at most 16 KiB");
        self.next = self.next.wrapping_add(len);
        Progress::Grown
    }

    /// Gives the room back.
    pub(crate) fn free(self, budget: &mut Budget) {
        budget.give(self.bytes.len());
    }
}
