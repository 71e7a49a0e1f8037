//! Sessions that go on from rows: for a table that begins in the middle of a recording.
//!
//! The packets before were given rows by another table, whose process is gone or somewhere else.
//! What its rows say is enough to go on under the same identity: when the session began and who
//! began it, how far its connection was, its names. What no row says begins anew, as it does for a
//! session seen from its middle on: sequence numbers, and messages that were under way.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use format::session_row::{History, SessionRow, SparseNames, State};
use units::{InterfaceId, Timestamp};
use wire::{AppBy, FiveTuple, PackedNames, Recognised, Tunnel};

use crate::Config;
use crate::key::Key;
use crate::tcp::Tcp;

/// What the newest row of a session says.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    pub(crate) tuple: FiveTuple,
    pub(crate) vlan: [Option<u16>; 2],
    pub(crate) mpls: Option<u32>,
    pub(crate) tunnel: Option<Box<Tunnel>>,
    pub(crate) icmp: Option<(u8, u8)>,
    pub(crate) session_start: Timestamp,
    /// The start of the row.
    pub(crate) row_start: Timestamp,
    end: Timestamp,
    state: State,
    history: History,
    handshake_ns: Option<u64>,
    /// The responder has sent something.
    pub(crate) answered: bool,
    pub(crate) interface: InterfaceId,
    pub(crate) app: Option<Recognised>,
    names: Option<Box<SparseNames>>,
    /// It was not over.
    continues: bool,
    /// Which of the segments it is from: newer ones were taken before.
    segment: u32,
}

impl Resumed {
    fn of(row: SessionRow, segment: u32) -> Self {
        Self {
            tuple: row.tuple,
            vlan: row.vlan,
            mpls: row.mpls,
            tunnel: row.tunnel.map(Box::new),
            icmp: row.icmp,
            session_start: row.session_start,
            row_start: row.start,
            end: row.end,
            state: row.state,
            history: row.history,
            handshake_ns: row.handshake_ns,
            answered: row.resp.packets > 0 || row.history.as_str().contains('d'),
            interface: row.interface,
            app: row.app.filter(|app| app.by != AppBy::Port),
            names: (!row.names.is_none()).then(|| Box::new(row.names)),
            continues: row.continues,
            segment,
        }
    }

    fn memory_bytes(&self) -> usize {
        let names = |names: &SparseNames| size_of::<SparseNames>() + names.heap_bytes();
        let tunnel = self.tunnel.as_ref().map_or(0, |_| size_of::<Tunnel>());
        // Nodes of the tree are at least half full.
        2 * size_of::<(Key, Self)>() + self.names.as_deref().map_or(0, names) + tunnel
    }

    /// How far its connection was.
    pub(crate) fn tcp(&self) -> Tcp {
        Tcp::resumed(self.state, self.history, self.handshake_ns)
    }

    /// What the parsers had found.
    pub(crate) fn names(&self) -> Option<PackedNames> {
        let names = self.names.as_deref()?;
        // The protocol is that of the row, which a parser or a signature has found.
        let app = self.app.map(|app| app.app);
        Some(PackedNames::new(wire::Names { app, ..(**names).clone() }, &mut Vec::new()))
    }

    /// Whether a packet of the same key is one of the session, by the rules of a table that has it.
    fn takes(&self, packet: &Asking, config: &Config) -> bool {
        let timeout_ns = config.timeout_ns(packet.key.proto(), self.tcp().is_over());
        let is_in_time = timeout_ns.is_none_or(|timeout| packet.time.since(self.end) <= timeout);
        // Which number the connection began with is not known any more.
        let is_another = packet.begins_connection && self.state != State::S0;
        self.continues && is_in_time && packet.time >= self.session_start && !is_another
    }
}

/// Where a row is from that another table made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    /// Number of its segment. The newest one comes first, and its rows by their start.
    pub segment: u32,
    /// The first packet comes at about this time.
    pub at: Timestamp,
}

/// A packet of which the table has no session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) key: Key,
    pub(crate) time: Timestamp,
    /// It is a SYN, and no answer to one.
    pub(crate) begins_connection: bool,
}

/// Sessions that go on when a packet of theirs comes.
#[derive(Debug, Default)]
pub(crate) struct Resumable {
    sessions: BTreeMap<Key, Resumed>,
    bytes: usize,
}

impl Resumable {
    /// Takes a row. What is over by the time `at` need not be kept, nor what has no space.
    pub(crate) fn add(
        &mut self,
        row: SessionRow,
        Before { segment, at }: Before,
        (config, vlan_in_key): (&Config, bool),
    ) {
        let key = Key::of_slice(&row, vlan_in_key);
        if !may_go_on(&key, row.end, (at, config)) {
            return;
        }
        let new = Resumed::of(row, segment);
        let new_bytes = new.memory_bytes();
        match self.sessions.entry(key) {
            Entry::Vacant(place) if self.bytes + new_bytes <= config.resumed_bytes_max() => {
                self.bytes += new_bytes;
                place.insert(new);
            }
            Entry::Occupied(mut place) if place.get().segment == segment => {
                self.bytes = self.bytes + new_bytes - place.get().memory_bytes();
                place.insert(new);
            }
            Entry::Vacant(_) | Entry::Occupied(_) => {}
        }
    }

    /// The session that a packet goes on with.
    pub(crate) fn take(&mut self, packet: &Asking, config: &Config) -> Option<Resumed> {
        let resumed = self.sessions.remove(&packet.key)?;
        self.bytes -= resumed.memory_bytes();
        Some(resumed).filter(|it| it.takes(packet, config))
    }

    /// Forgets those that no packet can go on with any more.
    pub(crate) fn expire(&mut self, now: Timestamp, config: &Config) {
        let bytes = &mut self.bytes;
        self.sessions.retain(|key, resumed| {
            let is_kept = may_go_on(key, resumed.end, (now, config));
            *bytes -= if is_kept { 0 } else { resumed.memory_bytes() };
            is_kept
        });
    }
}

/// Whether a session whose newest row ends at `end` has not been silent for too long at `now`. One
/// that has ended counts as long as any: an older row of it says that it goes on.
fn may_go_on(key: &Key, end: Timestamp, (now, config): (Timestamp, &Config)) -> bool {
    let timeout = config.timeout_ns(key.proto(), false);
    timeout.is_none_or(|timeout| now.since(end) <= timeout)
}
