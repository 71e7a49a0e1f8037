//! What a query cost, for `--explain`.

use units::Clock;

/// Counters of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Explain {
    /// Segments that the catalog knows.
    pub segments: u64,
    /// Segments not opened, because of their times or their filter.
    pub segments_pruned: u64,
    /// Bytes read of index files.
    pub index_bytes: u64,
    /// Segments whose index could not be read, and was made from the packets.
    pub segments_rebuilt: u64,
    /// Stripes indexed from their packets, those of rebuilt segments included.
    pub stripes_indexed: u64,
    /// Rows of the segments opened.
    pub rows: u64,
    /// Rows that match.
    pub rows_matched: u64,
    /// Pieces read for their packets.
    pub pieces_read: u64,
    /// Packets in those.
    pub packets_seen: u64,
    /// Bytes read from the volume for packets, heads included.
    pub bytes_read: u64,
    /// Time to find the newest stripe and the segments.
    pub open_ns: i64,
    /// Time to select rows, indexing included.
    pub select_ns: i64,
    /// Time to read, match and write packets.
    pub packets_ns: i64,
}

/// Times one step after the other.
pub(crate) struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    since: i64,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn start(clock: &'a dyn Clock) -> Self {
        Self { clock, since: clock.boottime_ns() }
    }

    /// Nanoseconds since the start or the lap before.
    pub(crate) fn lap(&mut self) -> i64 {
        let now = self.clock.boottime_ns();
        now - core::mem::replace(&mut self.since, now)
    }
}
