//! How rows and sessions are told apart.

use core::fmt;

use format::head::StripeId;
use format::slice::Slice;
use units::Timestamp;
use wire::FiveTuple;

/// Number of a row in the volume: first stripe of its segment, place in that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct RowId {
    pub(crate) segment: StripeId,
    pub(crate) row: u64,
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.segment, self.row)
    }
}

impl RowId {
    /// From its text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (segment, row) = text.rsplit_once('-')?;
        let (sequence, sub) = segment.split_once('.')?;
        let segment = StripeId { sequence: sequence.parse().ok()?, sub: sub.parse().ok()? };
        Some(Self { segment, row: row.parse().ok()? })
    }
}

/// The column that tells whether further rows follow.
pub(crate) const CONTINUES: &str = "continues";
/// The column that tells whether packets are still there: without it no row is shown.
pub(crate) const PIECES: &str = "piece_sequences";

/// What all rows of a session share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Identity {
    pub(crate) tuple: FiveTuple,
    vlan: [Option<u16>; 2],
    start: Timestamp,
}

impl Identity {
    /// The columns that it is made of.
    pub(crate) const COLUMNS: [&str; 8] = [
        "proto",
        "orig_ip",
        "orig_port",
        "resp_ip",
        "resp_port",
        "vlan",
        "vlan_inner",
        "session_age_ns",
    ];

    pub(crate) fn of(row: &Slice) -> Self {
        // Written later, the first rows of a session may have been seen from the other side.
        let (tuple, _) = row.tuple.canonical();
        Self { tuple, vlan: row.vlan, start: row.session_start }
    }

    /// Earliest packet of the session.
    pub(crate) fn start(&self) -> Timestamp {
        self.start
    }
}
