//! What a modelled disk has done.

/// What was asked of a [`crate::Modelled`] so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Reads, failed ones included.
    pub reads: u64,
    /// Bytes in `reads`.
    pub read_bytes: u64,
    /// Writes, both kinds, failed ones included.
    pub writes: u64,
    /// Bytes in `writes`.
    pub written_bytes: u64,
    /// Flushes, both kinds, failed ones included.
    pub flushes: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Jumps of the arm.
    pub jumps: u64,
}

impl Work {
    /// Writes and flushes: what [`crate::MUTATIONS`] counts.
    pub fn mutations(&self) -> u64 {
        self.writes + self.flushes
    }
}
