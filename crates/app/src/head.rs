//! The beginning of a message that spans segments, put together in order.

/// Bytes of one head, in order or not.
const HEAD_LEN_MAX: usize = 16 << 10;

/// Segments of one head; bounds the work of a sender of tiny ones.
const SEGMENT_COUNT_MAX: u8 = 64;

/// The room that all heads of a table share.
#[derive(Debug)]
pub struct Budget {
    /// Bytes that heads may still take.
    pub free_bytes: usize,
    /// Heads given up because there was no room.
    pub refused: u64,
}

impl Budget {
    fn take(&mut self, bytes: usize) -> bool {
        match self.free_bytes.checked_sub(bytes) {
            Some(rest) => self.free_bytes = rest,
            None => self.refused += 1,
        }
        self.free_bytes.checked_add(bytes).is_some()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// More bytes are there in order.
    Grown,
    /// Nothing new in order.
    Waiting,
    /// No room.
    Full,
}

#[derive(Debug)]
pub(crate) struct Head<K> {
    pub(crate) kind: K,
    next: u32,
    bytes: Vec<u8>,
    /// Segments that came too early.
    early: Vec<(u32, Vec<u8>)>,
    /// What this head has taken from the budget.
    held: usize,
    segments: u8,
}

impl<K> Head<K> {
    /// Starts with `payload`, unless there is no room for it.
    pub(crate) fn begin(kind: K, start: u32, payload: &[u8], budget: &mut Budget) -> Option<Self> {
        let mut head =
            Self { kind, next: start, bytes: Vec::new(), early: Vec::new(), held: 0, segments: 0 };
        if head.add(start, payload, budget) == Progress::Full {
            head.free(budget);
            return None;
        }
        Some(head)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sequence number of the byte after the last one in order.
    pub(crate) fn next_sequence(&self) -> u32 {
        self.next
    }

    pub(crate) fn add(&mut self, start: u32, payload: &[u8], budget: &mut Budget) -> Progress {
        if self.segments == SEGMENT_COUNT_MAX
            || self.held + payload.len() > HEAD_LEN_MAX
            || !budget.take(payload.len())
        {
            return Progress::Full;
        }
        self.segments += 1;
        self.held += payload.len();
        if start.wrapping_sub(self.next).cast_signed() > 0 {
            self.early.push((start, payload.to_vec()));
            return Progress::Waiting;
        }
        let before = self.next;
        self.append(start, payload);
        while let Some(at) = self
            .early
            .iter()
            .position(|(start, _)| start.wrapping_sub(self.next).cast_signed() <= 0)
        {
            let (start, payload) = self.early.swap_remove(at);
            self.append(start, &payload);
        }
        if self.next == before { Progress::Waiting } else { Progress::Grown }
    }

    /// Appends what lies beyond the bytes in order.
    fn append(&mut self, start: u32, payload: &[u8]) {
        let known = usize::try_from(self.next.wrapping_sub(start)).unwrap_or(usize::MAX);
        if let Some(fresh) = payload.get(known..) {
            self.bytes.extend_from_slice(fresh);
            let len = u32::try_from(fresh.len()).expect("a head is at most 16 KiB");
            self.next = self.next.wrapping_add(len);
        }
    }

    /// Gives the room back.
    pub(crate) fn free(self, budget: &mut Budget) {
        budget.free_bytes += self.held;
    }
}
