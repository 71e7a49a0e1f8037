//! Connections that cannot be opened, or do not last: nobody answers, or somebody refuses or resets.
//!
//! Mechanism: a SYN that is not answered is sent again after a second, then after two, four and so
//! on; a reset, or an ICMP message, ends the attempt at once. So an attempt whose SYN was sent
//! again got no answer, and one that ended within a round trip was refused. Refuted for a place
//! where nearly all other attempts succeed, and by an attempt that has not yet waited a second.

mod refused;
mod silent;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use network::sockets::TcpState;

use super::super::tally::Failed;
use super::super::watch::{Key, Track};
use super::ends::plain;
use super::explain::{Found, Path};
use super::machine::Machine;

/// Attempts to reach one place from one namespace.
#[derive(Debug, Default)]
struct Place<'w> {
    /// Sockets whose SYN was sent again.
    silent: Vec<(Key, &'w Track)>,
    /// Connections that were opened meanwhile, of which our end was seen.
    opened_here: usize,
    /// And of which the other end was seen, on this machine: one of both may live for so short a
    /// time that no look has it.
    opened_there: usize,
    failed: Vec<&'w Failed>,
}

impl Place<'_> {
    fn sum(&self, of: fn(&Failed) -> u64) -> u64 {
        self.failed.iter().map(|failed| of(failed)).fold(0, u64::saturating_add)
    }

    /// Connections that were opened meanwhile.
    fn opened(&self) -> usize {
        self.opened_here.max(self.opened_there)
    }

    /// Who asks; a process whose name was seen at any moment goes by it.
    fn askers(&self) -> Vec<String> {
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

type Places<'w> = BTreeMap<(u64, SocketAddr), Place<'w>>;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let places = places(machine);
    let of = |(at, place): (&(u64, SocketAddr), &Place<'_>)| {
        [
            silent::finding(machine, *at, place),
            refused::finding(machine, &places, (*at, place)),
            refused::reset(machine, *at, place),
        ]
    };
    places.iter().flat_map(of).flatten().collect()
}

fn places<'w>(machine: &Machine<'w>) -> Places<'w> {
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
fn path(machine: &Machine<'_>, (inode, remote): (u64, SocketAddr), place: &Place<'_>) -> Path {
    let mut path = Path::of(machine, place.silent.iter().copied());
    path.namespaces.insert(inode);
    path.hosts.insert(remote.ip());
    if let Some(there) = machine.namespace_of(inode, remote.ip()) {
        path.namespaces.insert(there);
        path.services.insert((there, remote.port()));
    }
    path
}
