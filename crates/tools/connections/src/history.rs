//! A network namespace through the watch: its counters, and what its packets go through.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::LinkState;
use network::paths::{
    Conntrack, LinkAddress, LinkLook, LinkTotals, Neighbour, NeighbourState, PathLook, Queue,
};
use network::sockets::{Counters, Settings};

use super::place::Place;

/// Neighbours that are followed in one namespace.
const NEIGHBOURS_MAX: usize = 16_384;
/// Link-level addresses that are kept of one neighbour.
const ADDRESSES_MAX: usize = 8;

/// A namespace through the watch.
#[derive(Clone, Debug)]
pub struct NamespaceHistory {
    /// Place of the namespace.
    pub place: Place,
    /// Its counters when the watch began.
    pub before: Counters,
    /// And at its end.
    pub after: Counters,
    /// Settings of the namespace.
    pub settings: Settings,
    /// Its interfaces by number.
    pub links: BTreeMap<u32, LinkHistory>,
    /// Its queueing disciplines by interface, handle and parent.
    pub queues: BTreeMap<(u32, u32, u32), QueueHistory>,
    /// Its neighbours by interface and address.
    pub neighbours: BTreeMap<(u32, IpAddr), NeighbourHistory>,
    /// Its connection table.
    pub conntrack: Option<ConntrackHistory>,
}

/// An interface through the watch.
#[derive(Clone, Debug)]
pub struct LinkHistory {
    /// What it had counted when it was seen first.
    pub before: LinkTotals,
    /// As it was seen last.
    pub last: LinkLook,
}

impl LinkHistory {
    /// What it counted during the watch.
    pub fn gained(&self) -> LinkTotals {
        self.last.totals.since(self.before)
    }

    /// Packets can come.
    pub fn is_up(&self) -> bool {
        self.last.state == LinkState::Up
    }
}

/// A queueing discipline through the watch.
#[derive(Clone, Debug)]
pub struct QueueHistory {
    /// As it was seen first.
    pub first: Queue,
    /// As it was seen last.
    pub last: Queue,
    /// Most bytes that waited at a look.
    pub backlog_bytes_max: u32,
    /// Looks at which something waited.
    pub waiting_looks: u64,
    /// All looks.
    pub looks: u64,
}

impl QueueHistory {
    /// Packets dropped during the watch.
    pub fn drops(&self) -> u32 {
        self.last.drops.wrapping_sub(self.first.drops)
    }

    /// Packets that went through during the watch.
    pub fn packets(&self) -> u32 {
        self.last.packets.wrapping_sub(self.first.packets)
    }

    /// Times that a packet had to wait for the rate that is allowed.
    pub fn overlimits(&self) -> u32 {
        self.last.overlimits.wrapping_sub(self.first.overlimits)
    }

    /// Bytes that went through during the watch.
    pub fn bytes(&self) -> u64 {
        self.last.bytes.saturating_sub(self.first.bytes)
    }
}

/// A neighbour through the watch.
#[derive(Clone, Debug, Default)]
pub struct NeighbourHistory {
    /// Link-level addresses that it had, in the order in which they came, each once.
    pub addresses: Vec<LinkAddress>,
    /// The one that it had last.
    pub last: Option<LinkAddress>,
    /// How often it became one that it had had before.
    pub returns: u32,
    /// Looks at which it had not answered, or was still asked.
    pub silent_looks: u64,
    /// Looks at which it was asked.
    pub asked_looks: u64,
    /// It was silent at the last look.
    pub is_silent: bool,
}

impl NeighbourHistory {
    fn take(&mut self, seen: &Neighbour) {
        self.is_silent = seen.state != NeighbourState::Known;
        let Some(address) = seen.link_address else { return };
        let is_other = self.last.is_some_and(|last| last != address);
        if self.addresses.contains(&address) {
            self.returns = self.returns.saturating_add(u32::from(is_other));
        } else if self.addresses.len() < ADDRESSES_MAX {
            self.addresses.push(address);
        }
        self.last = Some(address);
    }
}

/// A connection table through the watch.
#[derive(Clone, Debug)]
pub struct ConntrackHistory {
    /// As it was seen first.
    pub first: Conntrack,
    /// As it was seen last.
    pub last: Conntrack,
    /// Most connections at a look.
    pub count_max: u64,
}

impl ConntrackHistory {
    /// What a count, such as `drop`, gained during the watch.
    pub fn gained(&self, name: &str) -> u64 {
        let count = |of: &Conntrack| of.counts.get(name).copied().unwrap_or(0);
        count(&self.last).saturating_sub(count(&self.first))
    }
}

impl NamespaceHistory {
    /// At the first look.
    pub(super) fn new(place: Place, before: Counters) -> Self {
        Self {
            place,
            before,
            after: Counters::new(),
            settings: Settings::new(),
            links: BTreeMap::new(),
            queues: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            conntrack: None,
        }
    }

    /// What a counter has counted since the namespace began.
    pub fn total(&self, name: &str) -> u64 {
        self.after.get(name).copied().unwrap_or(0)
    }

    /// And during the watch.
    pub fn gained(&self, name: &str) -> u64 {
        self.total(name).saturating_sub(self.before.get(name).copied().unwrap_or(0))
    }

    /// A setting that is a number.
    pub fn number(&self, setting: &str) -> Option<u32> {
        self.settings.get(setting)?.parse().ok()
    }

    /// Whether a setting is on, as it is by default.
    pub fn is_on(&self, setting: &str) -> bool {
        self.settings.get(setting).is_none_or(|value| value != "0")
    }

    /// Packets between others go through it.
    pub fn forwards(&self) -> bool {
        self.gained("IpForwDatagrams") > 0 || self.gained("Ip6OutForwDatagrams") > 0
    }

    /// The interface that has an address.
    pub fn link_with(&self, address: IpAddr) -> Option<&LinkHistory> {
        self.links.values().find(|link| link.last.addresses.contains(&address))
    }

    /// Takes in what its packets go through, and what changed before.
    pub(super) fn take_paths(&mut self, paths: PathLook, changes: &[Neighbour]) {
        for link in paths.links {
            let before = link.totals;
            let history = self.links.entry(link.ifindex);
            history
                .and_modify(|history| history.last = link.clone())
                .or_insert_with(|| LinkHistory { before, last: link });
        }
        for queue in paths.queues {
            self.take_queue(queue);
        }
        for neighbour in changes {
            self.take_neighbour(neighbour);
        }
        for neighbour in &paths.neighbours {
            if let Some(history) = self.take_neighbour(neighbour) {
                history.silent_looks += u64::from(history.is_silent);
                history.asked_looks += u64::from(neighbour.state == NeighbourState::Asked);
            }
        }
        if let Some(seen) = paths.conntrack {
            let count = seen.count;
            let history = self.conntrack.get_or_insert_with(|| ConntrackHistory {
                first: seen.clone(),
                last: seen.clone(),
                count_max: count,
            });
            history.count_max = history.count_max.max(count);
            history.last = seen;
        }
    }

    fn take_queue(&mut self, queue: Queue) {
        let key = (queue.link, queue.handle, queue.parent);
        let history = self.queues.entry(key).or_insert_with(|| QueueHistory {
            first: queue.clone(),
            last: queue.clone(),
            backlog_bytes_max: 0,
            waiting_looks: 0,
            looks: 0,
        });
        // One that was replaced begins anew.
        if history.last.kind != queue.kind {
            history.first = queue.clone();
        }
        history.backlog_bytes_max = history.backlog_bytes_max.max(queue.backlog_bytes);
        history.waiting_looks += u64::from(queue.backlog_packets > 0);
        history.looks += 1;
        history.last = queue;
    }

    fn take_neighbour(&mut self, seen: &Neighbour) -> Option<&mut NeighbourHistory> {
        let key = (seen.link, seen.address);
        if self.neighbours.len() >= NEIGHBOURS_MAX && !self.neighbours.contains_key(&key) {
            return None;
        }
        let history = self.neighbours.entry(key).or_default();
        history.take(seen);
        Some(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_comes_back_is_counted_and_one_that_moves_once_is_not() {
        let seen = |last| Neighbour {
            link: 1,
            address: IpAddr::from([10, 0, 0, 1]),
            link_address: Some(LinkAddress([2, 0, 0, 0, 0, last])),
            state: NeighbourState::Known,
        };
        let mut history = NeighbourHistory::default();
        for last in [1, 1, 2, 2] {
            history.take(&seen(last));
        }
        assert_eq!((history.addresses.len(), history.returns), (2, 0));
        for last in [1, 2] {
            history.take(&seen(last));
        }
        assert_eq!((history.addresses.len(), history.returns), (2, 2));
    }
}
