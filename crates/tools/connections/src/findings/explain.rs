//! A finding that is the consequence of another one says so and ranks behind it.
//!
//! A consequence has the cause on its path: the same interface, namespace, host or service. Then
//! its own severity falls by one step, and the cause is at least as severe as the consequence was.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::history::NamespaceHistory;
use super::super::watch::{Key, Track};
use super::machine::Machine;
use findings::{Finding, Severity, Subject};

/// A finding, and what it is about.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) finding: Finding,
    pub(super) path: Path,
    /// It is of a queue that delays much before it drops.
    pub(super) is_long_queue: bool,
}

impl Found {
    pub(super) fn new(finding: Finding, path: Path) -> Self {
        Self { finding, path, is_long_queue: false }
    }
}

/// What packets of a finding meet.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// Namespaces of both ends.
    pub(super) namespaces: BTreeSet<u64>,
    /// Interfaces of both ends.
    pub(super) interfaces: BTreeSet<(u64, u32)>,
    /// Addresses of other hosts.
    pub(super) hosts: BTreeSet<IpAddr>,
    /// Ports at which connections came to.
    pub(super) services: BTreeSet<(u64, u16)>,
    /// Processes of this machine that have the sockets.
    pub(super) processes: BTreeSet<u32>,
}

impl Path {
    /// That of an interface.
    pub(super) fn of_interface(namespace: u64, ifindex: u32) -> Self {
        Self {
            namespaces: [namespace].into(),
            interfaces: [(namespace, ifindex)].into(),
            ..Self::default()
        }
    }

    /// That of a service.
    pub(super) fn of_service(namespace: u64, port: u16) -> Self {
        Self {
            namespaces: [namespace].into(),
            services: [(namespace, port)].into(),
            ..Self::default()
        }
    }

    /// That of connections.
    pub(super) fn of<'t>(
        machine: &Machine<'_>,
        tracks: impl Iterator<Item = (Key, &'t Track)>,
    ) -> Self {
        let mut path = Self::default();
        for (key, track) in tracks {
            path.add(machine, key, track);
        }
        path
    }

    fn add(&mut self, machine: &Machine<'_>, key: Key, track: &Track) {
        let (local, remote) = (track.last.local, track.last.remote);
        self.add_ends(machine, key.namespace, (local.ip(), remote.ip()));
        self.services.insert((key.namespace, local.port()));
        self.processes.extend(track.owner.as_ref().map(|owner| owner.process));
        if let Some(there) = machine.namespace_of(key.namespace, remote.ip()) {
            self.services.insert((there, remote.port()));
        }
    }

    /// What is sent from an address of a namespace to another one.
    pub(super) fn add_ends(
        &mut self,
        machine: &Machine<'_>,
        namespace: u64,
        (local, remote): (IpAddr, IpAddr),
    ) {
        self.namespaces.insert(namespace);
        self.hosts.insert(remote.to_canonical());
        let here = machine.interface_of(namespace, (local, remote));
        self.interfaces.extend(here.map(|link| (namespace, link)));
        if let Some(there) = machine.namespace_of(namespace, remote) {
            self.namespaces.insert(there);
            let link = machine.interface_of(there, (remote, local));
            self.interfaces.extend(link.map(|link| (there, link)));
        }
    }
}

/// What a cause and its consequence must share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shared {
    Interface,
    Namespace,
    Host,
    Service,
}

/// Kinds of causes, what they explain, and what both have in common.
const EXPLAINS: [(&str, &[&str], Shared); 16] = [
    (
        "net.reverse_path",
        &["tcp.no_answer", "tcp.stalled", "net.neighbour", "net.dns_slow"],
        Shared::Namespace,
    ),
    (
        "net.neighbour",
        &["tcp.no_answer", "tcp.stalled", "tcp.retransmissions", "net.dns_slow"],
        Shared::Host,
    ),
    ("net.conntrack", &["tcp.no_answer", "tcp.retransmissions", "net.dns_slow"], Shared::Namespace),
    (
        "tcp.accept_queue",
        &["tcp.no_answer", "tcp.stalled", "tcp.unread", "tcp.refused"],
        Shared::Service,
    ),
    ("net.udp_overflow", &["net.dns_slow"], Shared::Service),
    (
        "net.duplex",
        &["net.interface_errors", "tcp.retransmissions", "tcp.small_window"],
        Shared::Interface,
    ),
    ("tcp.mtu_black_hole", &["tcp.retransmissions"], Shared::Host),
    ("tcp.mtu_black_hole", &["net.interface_errors"], Shared::Namespace),
    ("tcp.syn_cookies", &["tcp.two_speeds", "tcp.small_window"], Shared::Service),
    ("tcp.syn_cookies", &["tcp.accept_queue"], Shared::Namespace),
    // What treats some connections in another way than others does it by these means.
    (
        "tcp.two_speeds",
        &["net.queue_drops", "tcp.bufferbloat", "tcp.retransmissions", "tcp.small_window"],
        Shared::Interface,
    ),
    ("tcp.bufferbloat", &["net.queue_drops", "tcp.retransmissions"], Shared::Interface),
    (
        "net.queue_drops",
        &[
            "tcp.retransmissions",
            "tcp.small_window",
            "tcp.bufferbloat",
            "tcp.no_answer",
            "tcp.stalled",
            "net.dns_slow",
            "net.interface_errors",
        ],
        Shared::Interface,
    ),
    (
        "net.interface_errors",
        &[
            "tcp.retransmissions",
            "tcp.small_window",
            "tcp.no_answer",
            "tcp.stalled",
            "net.dns_slow",
        ],
        Shared::Interface,
    ),
    ("tcp.unread", &["tcp.receiver_limited"], Shared::Service),
    ("tcp.retransmissions", &["tcp.small_window"], Shared::Host),
];

/// The findings, with consequences behind their causes.
pub(super) fn explained(machine: &Machine<'_>, mut found: Vec<Found>) -> Vec<findings::Found> {
    let causes: Vec<(usize, usize)> = found
        .iter()
        .enumerate()
        .filter_map(|(at, consequence)| Some((cause_of(machine, &found, consequence)?, at)))
        .collect();
    // Chains are short: each kind stands in one once.
    for _ in 0..EXPLAINS.len() {
        for &(cause, at) in &causes {
            let Some(severity) = found.get(at).map(|found| found.finding.severity) else {
                continue;
            };
            if let Some(cause) = found.get_mut(cause) {
                cause.finding.severity = cause.finding.severity.max(severity);
            }
        }
    }
    for (cause, at) in causes {
        let cause = found.get(cause).map(|cause| (cause.finding.kind, cause.finding.what.clone()));
        if let (Some((kind, what)), Some(consequence)) = (cause, found.get_mut(at)) {
            consequence.finding.severity = lower(consequence.finding.severity);
            let cause = &mut consequence.finding.cause;
            *cause = format!("{cause} See {kind}: {what}.");
        }
    }
    let about = |Found { finding, path, .. }: Found| {
        finding.about(path.processes.into_iter().map(Subject::Process))
    };
    found.into_iter().map(about).collect()
}

/// The first cause of a finding that is on its path.
fn cause_of(machine: &Machine<'_>, found: &[Found], consequence: &Found) -> Option<usize> {
    EXPLAINS.iter().find_map(|(kind, consequences, shared)| {
        let explains = |cause: &Found| {
            cause.finding.kind == *kind
                && consequences.contains(&consequence.finding.kind)
                && is_in_order(cause, consequence)
                && shares(machine, (cause, consequence), *shared)
        };
        found.iter().position(explains)
    })
}

/// Where a queue is long before it drops, that it is long is the cause; else that it drops.
fn is_in_order(cause: &Found, consequence: &Found) -> bool {
    match (cause.finding.kind, consequence.finding.kind) {
        ("tcp.bufferbloat", "net.queue_drops") => consequence.is_long_queue,
        ("net.queue_drops", "tcp.bufferbloat") => !cause.is_long_queue,
        // It drops packets with false senders all the time: as many as get no answer at least.
        ("net.reverse_path", _) => cause.finding.reach >= consequence.finding.reach,
        // Overflows of which no look has seen the listener.
        ("tcp.syn_cookies", "tcp.accept_queue") => consequence.path.services.is_empty(),
        _ => true,
    }
}

fn lower(severity: Severity) -> Severity {
    match severity {
        Severity::Problem => Severity::Warning,
        Severity::Warning | Severity::Note => Severity::Note,
    }
}

fn shares(machine: &Machine<'_>, (cause, of): (&Found, &Found), shared: Shared) -> bool {
    let (one, other) = (&cause.path, &of.path);
    match shared {
        Shared::Host => {
            !one.hosts.is_disjoint(&other.hosts) && !one.namespaces.is_disjoint(&other.namespaces)
        }
        Shared::Service => !one.services.is_disjoint(&other.services),
        Shared::Namespace => {
            !one.namespaces.is_disjoint(&other.namespaces)
                || one.namespaces.iter().any(|at| forwards(machine, *at))
        }
        Shared::Interface => {
            let passes = |one: &Path, other: &Path| {
                let mut links = one.interfaces.iter();
                links
                    .any(|(at, link)| !other.namespaces.contains(at) && passes(machine, *at, *link))
            };
            !one.interfaces.is_disjoint(&other.interfaces)
                || passes(one, other)
                || passes(other, one)
        }
    }
}

pub(super) fn forwards(machine: &Machine<'_>, namespace: u64) -> bool {
    machine.watch.namespaces.get(&namespace).is_some_and(NamespaceHistory::forwards)
}

/// What is sent between other namespaces can pass it: its own forwards, or it has no address, as
/// the ports of a bridge have none.
fn passes(machine: &Machine<'_>, namespace: u64, link: u32) -> bool {
    let history = machine.watch.namespaces.get(&namespace);
    let link = history.and_then(|history| history.links.get(&link));
    forwards(machine, namespace) || link.is_some_and(|link| link.last.addresses.is_empty())
}
