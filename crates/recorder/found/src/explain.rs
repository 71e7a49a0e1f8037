//! What a query cost, for `--explain`.

use serde::Serialize;

/// Counters of one run. Fields are keys in JSON, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Explain {
    /// Segments that the catalog knows.
    pub segments: u64,
    /// Segments not opened because all their packets are earlier or later.
    pub pruned_by_time: u64,
    /// Segments not opened because a session id names another one.
    pub pruned_by_id: u64,
    /// Segments ruled out by the filter of a group of them, without a look at their file.
    pub pruned_by_group: u64,
    /// Segments ruled out by the filter in their own file.
    pub pruned_by_filter: u64,
    /// Segments whose index could not be read, and was made from the packets.
    pub segments_rebuilt: u64,
    /// Stripes indexed from their packets, those of rebuilt segments included.
    pub stripes_indexed: u64,
    /// Bytes read of index files.
    pub index_bytes: u64,
    /// Rows of the row groups that were looked into.
    pub rows: u64,
    /// Rows that match.
    pub rows_matched: u64,
    /// Pieces read for their packets.
    pub pieces_read: u64,
    /// Packets in those pieces.
    pub packets_seen: u64,
    /// Bytes read from the volume for packets, heads included.
    pub bytes_read: u64,
    /// Time to find the newest stripe and the segments.
    pub open_ns: i64,
    /// Time to select rows, indexing included.
    pub select_ns: i64,
    /// Part of it: to learn which segments there are, and which stripes have none. Of `find` only,
    /// as the two that follow.
    pub list_ns: i64,
    /// Part of it: to look into segments, by filters and by the columns that decide.
    pub look_ns: i64,
    /// Part of it: to read the rows that match, and to hand them out.
    pub rows_ns: i64,
    /// Time to read, match and write packets.
    pub packets_ns: i64,
}

impl Explain {
    /// The same with what it cost by now, looks besides the one that answers included.
    #[must_use]
    pub fn with_cost_of(self, now: Self) -> Self {
        Self {
            index_bytes: now.index_bytes,
            segments_rebuilt: now.segments_rebuilt,
            stripes_indexed: now.stripes_indexed,
            rows: now.rows,
            pieces_read: now.pieces_read,
            packets_seen: now.packets_seen,
            bytes_read: now.bytes_read,
            ..self
        }
    }

    /// Segments not opened, for whatever reason.
    pub fn segments_pruned(&self) -> u64 {
        self.pruned_by_time + self.pruned_by_id + self.pruned_by_group + self.pruned_by_filter
    }
}
