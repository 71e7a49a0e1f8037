//! What a search shows: sessions that match, and how far it is.

use format::session_row::SessionRow;
use wire::CommunityId;

/// Whether a session's packets can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// The volume holds all packets of the session.
    Held,
    /// Some of its pieces are overwritten.
    Partly,
    /// All of its pieces are overwritten; its rows are kept.
    Retired,
}

/// A session that matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// `SEQUENCE.SUB-ROW` of its first row.
    pub id: String,
    /// Ids of all its rows.
    pub rows: Vec<String>,
    /// Its rows as one: sums of the counters, names and state of the last, all pieces.
    pub session: SessionRow,
    /// Community id, where there is IP.
    pub community_id: Option<CommunityId>,
    /// Whether its packets can be had.
    pub packets: Held,
    /// From packets that no index has: the id holds until something else is recorded.
    pub is_provisional: bool,
}

impl Found {
    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        let ids: usize = self.rows.iter().map(|id| id.len() + size_of::<String>()).sum();
        size_of::<Self>()
            + ids
            + self.id.len()
            + self.session.names.heap_bytes()
            + size_of_val(self.session.pieces.as_slice())
    }
}

/// What a search calls back with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A session that matches.
    Found(&'a Found),
    /// So many parts of the ring, mostly segments, of so many are searched.
    Searched {
        /// Number of parts done.
        parts: usize,
        /// Number of all parts.
        of: usize,
    },
}
