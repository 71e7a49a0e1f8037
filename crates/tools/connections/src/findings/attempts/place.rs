//! Attempts by the place that they are to reach.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use network::sockets::TcpState;

use super::super::ends::plain;
use super::super::explain::Path;
use super::super::machine::Machine;
use crate::tally::Failed;
use crate::watch::{Key, Track};

/// Attempts to reach one place from one namespace.
#[derive(Debug, Default)]
pub(super) struct Place<'w> {
    /// Sockets whose SYN was sent again.
    pub(super) silent: Vec<(Key, &'w Track)>,
    /// Connections that were opened meanwhile, of which our end was seen.
    opened_here: usize,
    /// And of which the other end was seen, on this machine: one of both may live for so short a
    /// time that no look has it.
    opened_there: usize,
    pub(super) failed: Vec<&'w Failed>,
}

impl Place<'_> {
    pub(super) fn sum(&self, of: fn(&Failed) -> u64) -> u64 {
        self.failed.iter().map(|failed| of(failed)).fold(0, u64::saturating_add)
    }

    /// Connections that were opened meanwhile.
    pub(super) fn opened(&self) -> usize {
        self.opened_here.max(self.opened_there)
    }

    /// Who asks; a process whose name was seen at any moment goes by it.
    pub(super) fn askers(&self) -> Vec<String> {
        let failed = self.failed.iter().filter_map(|failed| failed.by.as_ref());
        let waiting = self.silent.iter().filter_map(|(_, track)| track.owner.as_deref());
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        for owner in failed.map(|by| &*by.owner).chain(waiting) {
            let name = names.entry(owner.process).or_default();
            if !owner.name.is_empty() {
                *name = owner.to_string();
            }
        }
        let ended = |process| format!("process {process}, which has ended");
        let name = |(process, name): (u32, String)| {
            if name.is_empty() { ended(process) } else { name }
        };
        names.into_iter().map(name).collect()
    }
}

/// By namespace and place.
pub(super) type Places<'w> = BTreeMap<(u64, SocketAddr), Place<'w>>;

/// All that were seen.
pub(super) fn places<'w>(machine: &Machine<'w>) -> Places<'w> {
    let mut places: Places<'w> = BTreeMap::new();
    for (key, track) in &machine.watch.tracks {
        let is_silent = track.looks.syn_retries_max > 0;
        let is_opened = track.is_new
            && !matches!(
                track.last.state,
                TcpState::SynSent | TcpState::SynReceived | TcpState::Listen
            );
        let (local, remote) = (plain(track.last.local), plain(track.last.remote));
        let is_ours = machine.listeners(key.namespace, local.port()).next().is_none();
        if is_ours && (is_silent || is_opened) {
            let place = places.entry((key.namespace, remote)).or_default();
            place.opened_here += usize::from(is_opened);
            place.silent.extend(is_silent.then_some((*key, track)));
        }
        if let Some(from) = machine.namespace_of(key.namespace, remote.ip()).filter(|_| !is_ours) {
            places.entry((from, local)).or_default().opened_there += usize::from(is_opened);
        }
    }
    let own = machine.watch.namespaces.iter().find(|(_, history)| history.place.is_own);
    for (_, remote, failed) in machine.watch.failures.iter() {
        let by = failed.by.as_ref().and_then(|by| by.namespace);
        // Of a process that has ended it is not known: it is the one with that address.
        let has_address = || machine.namespace_of(*own?.0, failed.from?);
        let namespace = by.or_else(has_address);
        // Others are not looked at.
        if let Some(namespace) = namespace.filter(|it| machine.watch.namespaces.contains_key(it)) {
            places.entry((namespace, plain(remote))).or_default().failed.push(failed);
        }
    }
    places
}

/// What the attempts meet.
pub(super) fn path(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> Path {
    let mut path = Path::of(machine, place.silent.iter().copied());
    path.namespaces.insert(inode);
    path.hosts.insert(remote.ip());
    if let Some(there) = machine.namespace_of(inode, remote.ip()) {
        path.namespaces.insert(there);
        path.services.insert((there, remote.port()));
    }
    path
}
