//! The space that the searches of all sessions of a table share.

/// Bytes that may still be taken of something.
#[derive(Debug)]
pub struct Room {
    /// Bytes that may still be taken.
    pub free_bytes: usize,
    /// What was given up because there was no space.
    pub refused: u64,
}

impl Room {
    fn new(bytes: usize) -> Self {
        Self { free_bytes: bytes, refused: 0 }
    }

    /// Takes space for so many bytes; false, and counted, when there is none.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let rest = self.free_bytes.checked_sub(bytes);
        self.refused = self.refused.saturating_add(u64::from(rest.is_none()));
        self.free_bytes = rest.unwrap_or(self.free_bytes);
        rest.is_some()
    }

    pub(crate) fn give(&mut self, bytes: usize) {
        self.free_bytes += bytes;
    }

    /// Whether there are so many bytes; counted when there are not.
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        let has_room = self.free_bytes >= bytes;
        self.refused = self.refused.saturating_add(u64::from(!has_room));
        has_room
    }

    /// Something that was held takes another number of bytes. It was asked before whether there is
    /// space ([`Self::has`]) for what it may grow.
    pub(crate) fn change(&mut self, from: usize, to: usize) {
        self.free_bytes = (self.free_bytes + from).saturating_sub(to);
    }
}

/// What bounds the memory of all searches together.
#[derive(Debug)]
pub struct Budget {
    /// For messages in parts, and for segments that wait for those before them: what is refused is
    /// a message or a segment.
    pub heads: Room,
    /// For the names themselves and what it takes to find them: what is refused is a look at a
    /// payload. What is known stays.
    pub names: Room,
    /// Where names are packed.
    pub(crate) scratch: Vec<u8>,
}

impl Budget {
    /// So many bytes for each.
    pub fn new(heads: usize, names: usize) -> Self {
        Self { heads: Room::new(heads), names: Room::new(names), scratch: Vec::new() }
    }
}
