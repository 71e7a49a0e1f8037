//! Connections that should be alike: those that came to one port of ours, and those that were
//! opened to one port of another host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use findings::words::{plural, some};
use network::sockets::{TcpInfo, TcpState};

use super::super::history::NamespaceHistory;
use super::super::watch::{Key, Track, Watch};
use super::ends::{Ends, plain};
use super::explain::Path;
use super::machine::Machine;

/// Which connections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Service {
    /// Those that came to this port.
    Here { namespace: u64, port: u16 },
    /// Those that were opened to it.
    There { namespace: u64, at: (IpAddr, u16) },
}

/// A group with at least one open connection.
#[derive(Debug)]
pub(super) struct Group<'w> {
    pub(super) service: Service,
    pub(super) members: Vec<Member<'w>>,
    /// Sockets that listen at the port; of a service elsewhere none.
    pub(super) listeners: Vec<&'w Track>,
}

/// An open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'w> {
    pub(super) key: Key,
    pub(super) track: &'w Track,
    pub(super) first: &'w TcpInfo,
    pub(super) last: &'w TcpInfo,
}

impl Group<'_> {
    pub(super) fn namespace<'w>(&self, watch: &'w Watch) -> Option<&'w NamespaceHistory> {
        let (Service::Here { namespace, .. } | Service::There { namespace, .. }) = self.service;
        watch.namespaces.get(&namespace)
    }

    /// `port 9000 of server (process 77)`, `10.0.0.2:9000`.
    pub(super) fn name(&self, watch: &Watch) -> String {
        let inside = self.namespace(watch).map_or_else(String::new, |history| {
            if history.place.is_own { String::new() } else { format!(" in {}", history.place.name) }
        });
        match self.service {
            Service::Here { port, .. } => {
                let owner = self.listeners.iter().find_map(|listener| listener.owner.as_ref());
                let owner = owner.map_or_else(String::new, |owner| format!(" of {owner}"));
                format!("port {port}{owner}{inside}")
            }
            Service::There { at: (ip, port), .. } => {
                format!("{}{inside}", SocketAddr::new(ip, port))
            }
        }
    }
}

/// What packets of some connections meet.
pub(super) fn path<'m, 'w: 'm>(
    machine: &Machine<'_>,
    members: impl Iterator<Item = &'m Member<'w>>,
) -> Path {
    Path::of(machine, members.map(|member| (member.key, member.track)))
}

/// What a counter has counted between two states; what the kernel does not report counts as 0.
pub(super) fn gained<T: Into<u64>>(
    first: &TcpInfo,
    last: &TcpInfo,
    of: fn(&TcpInfo) -> Option<T>,
) -> u64 {
    let count = |info| of(info).map_or(0, Into::into);
    count(last).saturating_sub(count(first))
}

impl Member<'_> {
    /// What a counter has counted during the watch.
    pub(super) fn gained(&self, of: fn(&TcpInfo) -> Option<u64>) -> u64 {
        gained(self.first, self.last, of)
    }

    /// Segments with data that it sent during the watch, and their bytes.
    pub(super) fn sent(&self) -> (u64, u64) {
        let segments = gained(self.first, self.last, |info: &TcpInfo| info.data_segments_out);
        (segments, self.gained(|info| info.bytes_acked))
    }

    /// How long there was something to send for each segment: under way, or held back here.
    pub(super) fn busy_us_each(&self) -> Option<u64> {
        self.gained(|info| info.busy_us).checked_div(self.sent().0)
    }

    /// Both ends, with their processes.
    pub(super) fn line(&self, machine: &Machine<'_>) -> String {
        machine.line(self.key, self.track)
    }
}

/// How many connections, and which.
pub(super) fn lines(machine: &Machine<'_>, members: &[&Member<'_>]) -> String {
    let which = some(members.iter().map(|member| member.line(machine)));
    format!("{}: {which}", plural(members.len(), "connection"))
}

/// Open connections by what they belong to.
pub(super) fn of(watch: &Watch) -> Vec<Group<'_>> {
    let mut listeners: BTreeMap<(u64, u16), Vec<&Track>> = BTreeMap::new();
    for (key, track) in &watch.tracks {
        if track.last.state == TcpState::Listen {
            listeners.entry((key.namespace, track.last.local.port())).or_default().push(track);
        }
    }
    let mut groups: BTreeMap<Service, Vec<Member<'_>>> = BTreeMap::new();
    for (key, track) in &watch.tracks {
        let is_open = track.last.state == TcpState::Established;
        if let (true, Some(first), Some(last)) = (is_open, &track.first.info, &track.last.info) {
            let service = service(*key, track, &listeners);
            let member = Member { key: *key, track, first, last };
            groups.entry(service).or_default().push(member);
        }
    }
    let group = |(service, members)| {
        let listeners = match service {
            Service::Here { namespace, port } => listeners.get(&(namespace, port)),
            Service::There { .. } => None,
        };
        Group { service, members, listeners: listeners.cloned().unwrap_or_default() }
    };
    groups.into_iter().map(group).collect()
}

fn service(key: Key, track: &Track, listeners: &BTreeMap<(u64, u16), Vec<&Track>>) -> Service {
    let Key { namespace, .. } = key;
    let (local, remote) = (track.last.local, track.last.remote);
    if listeners.contains_key(&(namespace, local.port())) {
        return Service::Here { namespace, port: local.port() };
    }
    Service::There { namespace, at: (remote.ip().to_canonical(), remote.port()) }
}

/// Connections that are reported at their other end.
pub(super) type Told = BTreeSet<Ends>;

/// Ends of the connections that came to a port of this machine, as the one that opened them has
/// them: one connection is reported once, where it came to.
pub(super) fn came_here(groups: &[Group<'_>]) -> Told {
    let here = groups.iter().filter(|group| matches!(group.service, Service::Here { .. }));
    let members = here.flat_map(|group| &group.members);
    members
        .map(|member| (plain(member.track.last.remote), plain(member.track.last.local)))
        .collect()
}
