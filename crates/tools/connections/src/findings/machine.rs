//! The machine as findings see it: where the other end of a connection is, which processes are at
//! both ends, and which interface it passes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use network::sockets::{Owner, TcpState};

use super::super::watch::{Key, Track, Watch};
use super::ends::{Ends, plain, shown};

/// What was seen, and what is found of it by address.
#[derive(Debug)]
pub(super) struct Machine<'w> {
    pub(super) watch: &'w Watch,
    /// Sockets by their own end and the other one.
    ends: BTreeMap<Ends, Vec<Key>>,
    /// Namespaces that have an address.
    addresses: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// Ports that somebody listens at.
    listeners: BTreeMap<(u64, u16), Vec<Key>>,
}

impl<'w> Machine<'w> {
    pub(super) fn new(watch: &'w Watch) -> Self {
        let mut ends: BTreeMap<Ends, Vec<Key>> = BTreeMap::new();
        let mut listeners: BTreeMap<(u64, u16), Vec<Key>> = BTreeMap::new();
        for (key, track) in &watch.tracks {
            let last = &track.last;
            if last.state == TcpState::Listen {
                let at = (key.namespace, last.local.port());
                listeners.entry(at).or_default().push(*key);
            } else {
                ends.entry((plain(last.local), plain(last.remote))).or_default().push(*key);
            }
        }
        let mut addresses: BTreeMap<IpAddr, BTreeSet<u64>> = BTreeMap::new();
        for (inode, history) in &watch.namespaces {
            for address in history.links.values().flat_map(|link| &link.last.addresses) {
                addresses.entry(address.to_canonical()).or_default().insert(*inode);
            }
        }
        Self { watch, ends, addresses, listeners }
    }

    /// The other end of a connection, where it is on this machine and no other can be meant.
    pub(super) fn other_end(&self, key: Key, track: &Track) -> Option<(Key, &'w Track)> {
        let ends = (plain(track.last.remote), plain(track.last.local));
        let found = self.ends.get(&ends)?;
        let mut found = found.iter().filter(|other| **other != key);
        let other = *found.next()?;
        let track = self.watch.tracks.get(&other)?;
        found.next().is_none().then_some((other, track))
    }

    /// The namespace that has an address, seen from another one; `None` where several have it, or
    /// none of this machine.
    pub(super) fn namespace_of(&self, from: u64, address: IpAddr) -> Option<u64> {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Some(from);
        }
        let found = self.addresses.get(&address)?;
        if found.contains(&from) {
            return Some(from);
        }
        let mut found = found.iter();
        found.next().copied().filter(|_| found.next().is_none())
    }

    /// The interface that what is sent from here to there passes.
    pub(super) fn interface_of(
        &self,
        namespace: u64,
        (local, remote): (IpAddr, IpAddr),
    ) -> Option<u32> {
        let history = self.watch.namespaces.get(&namespace)?;
        let is_inside = self.namespace_of(namespace, remote) == Some(namespace);
        if is_inside {
            return history.links.iter().find(|(_, link)| link.last.is_loopback).map(|(at, _)| *at);
        }
        history.link_with(local.to_canonical()).map(|link| link.last.ifindex)
    }

    /// How many open connections pass an interface: what a finding of it reaches.
    pub(super) fn connections(&self, namespace: u64, ifindex: u32) -> usize {
        let passes = |track: &&Track| {
            let ends = (track.last.local.ip(), track.last.remote.ip());
            track.last.info.is_some() && self.interface_of(namespace, ends) == Some(ifindex)
        };
        self.watch.of_namespace(namespace).filter(passes).count().max(1)
    }

    /// Those who listen at a port of a namespace.
    pub(super) fn listeners(
        &self,
        namespace: u64,
        port: u16,
    ) -> impl Iterator<Item = &'w Track> + use<'w, '_> {
        let keys = self.listeners.get(&(namespace, port));
        keys.into_iter().flatten().filter_map(|key| self.watch.tracks.get(key))
    }

    /// ` in network namespace x`; nothing of our own.
    pub(super) fn inside(&self, namespace: u64) -> String {
        let history = self.watch.namespaces.get(&namespace);
        let other = history.filter(|history| !history.place.is_own);
        other.map_or_else(String::new, |history| format!(" in {}", history.place.name))
    }

    /// `10.0.0.1:41000 (curl, process 7) -> 10.0.0.2:9000 (nginx, process 12)`: from the end that
    /// opened it.
    pub(super) fn line(&self, key: Key, track: &Track) -> String {
        let last = &track.last;
        let other = self.other_end(key, track);
        let ours = end(last.local, track.owner.as_ref());
        let theirs = end(last.remote, other.and_then(|(_, other)| other.owner.as_ref()));
        let is_accepted = self.listeners.contains_key(&(key.namespace, last.local.port()));
        if is_accepted { format!("{theirs} -> {ours}") } else { format!("{ours} -> {theirs}") }
    }
}

fn end(at: SocketAddr, owner: Option<&Arc<Owner>>) -> String {
    let at = shown(at);
    match owner {
        Some(owner) if owner.name.is_empty() => format!("{at} (process {})", owner.process),
        Some(owner) => format!("{at} ({}, process {})", owner.name, owner.process),
        None => at.to_string(),
    }
}

/// The process that owns a socket, where it is known.
pub(super) fn program(owner: Option<&Owner>) -> String {
    owner.map_or_else(|| "a program".to_owned(), ToString::to_string)
}
