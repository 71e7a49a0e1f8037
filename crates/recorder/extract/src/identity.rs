//! What names a row, and what names a session.

use core::fmt;
use core::net::IpAddr;

use format::head::StripeId;
use format::session_row::SessionRow;
use index::{Columns, Needed};
use units::{Epoch, Timestamp};
use wire::{Address, CommunityId, FiveTuple};

/// Number of a row in the volume: first stripe of its segment, place in that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    /// The one behind it in its segment.
    pub(crate) fn next(self) -> Self {
        Self { row: self.row.saturating_add(1), ..self }
    }

    /// From its text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (segment, row) = text.rsplit_once('-')?;
        let (sequence, sub) = segment.split_once('.')?;
        let segment = StripeId { sequence: sequence.parse().ok()?, sub: sub.parse().ok()? };
        Some(Self { segment, row: row.parse().ok()? })
    }
}

fn ip(address: &Address) -> Option<IpAddr> {
    match *address {
        Address::V4(ip) => Some(ip.into()),
        Address::V6(ip) => Some(ip.into()),
        Address::Mac(_) | Address::None => None,
    }
}

/// What all rows of a session share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Identity {
    tuple: FiveTuple,
    vlan: [Option<u16>; 2],
    start: Timestamp,
    /// A capture that was imported twice has the same sessions twice.
    epoch: Epoch,
}

impl Identity {
    /// The columns that it is made of.
    pub(crate) const COLUMNS: [&str; 8] = Columns::OF_SESSION;

    pub(crate) fn of(row: &SessionRow) -> Self {
        // Written later, the first rows of a session may have been seen from the other side.
        let (tuple, _) = row.tuple.canonical();
        Self { tuple, vlan: row.vlan, start: row.session_start, epoch: row.epoch }
    }

    /// Earliest packet of the session.
    pub(crate) fn start(&self) -> Timestamp {
        self.start
    }

    /// What all rows of the session have, as far as indexes say who has it.
    pub(crate) fn needed(&self) -> Needed {
        let hosts = [self.tuple.orig, self.tuple.resp].iter().filter_map(ip).collect();
        // The messages of ICMP have a part in theirs.
        let id = self.tuple.proto.has_ports().then(|| CommunityId::of(&self.tuple, None));
        let community_ids = id.flatten().map(|id| id.0).into_iter().collect();
        Needed { hosts, community_ids, ..Needed::default() }
    }
}
