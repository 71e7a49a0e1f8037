//! The link-level address of a neighbour changes back and forth, or a neighbour does not answer.
//!
//! Mechanism: two machines that have one IP address both answer when they are asked, and packets go
//! now to the one, now to the other; the wrong one answers with a reset, or not at all. One change
//! is a takeover and no finding: an address has to come back. A neighbour that is asked at several
//! looks and does not answer is not there; what is sent to it waits and is dropped.

use std::net::IpAddr;

use super::super::explain::{Found, Path};
use super::super::machine::Machine;
use crate::{NamespaceHistory, NeighbourHistory};
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// Looks at which a neighbour was asked; one alone may be the moment before its answer.
const ASKED_MIN: u64 = 2;
/// Changes back to an address that it had had.
const RETURNS_MIN: u32 = 1;

type Neighbours<'h> = Vec<((u32, IpAddr), &'h NeighbourHistory)>;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (inode, history) in &machine.watch.namespaces {
        let all = || history.neighbours.iter().map(|(key, neighbour)| (*key, neighbour));
        let twice = all().filter(|(_, seen)| seen.returns >= RETURNS_MIN);
        found.extend(twice.map(|(key, seen)| of_two(machine, (*inode, history), (key, seen))));
        let silent: Neighbours<'_> =
            all().filter(|(_, seen)| seen.is_silent && seen.asked_looks >= ASKED_MIN).collect();
        found.extend(of_silent(machine, (*inode, history), &silent));
    }
    found
}

fn name(history: &NamespaceHistory, link: u32) -> &str {
    history.links.get(&link).map_or("an interface", |link| &link.last.name)
}

fn path(inode: u64, keys: impl Iterator<Item = (u32, IpAddr)>) -> Path {
    let hosts = keys.map(|(_, address)| address.to_canonical()).collect();
    Path { namespaces: [inode].into(), hosts, ..Path::default() }
}

fn of_two(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    (key, seen): ((u32, IpAddr), &NeighbourHistory),
) -> Found {
    let ((link, address), inside) = (key, machine.inside(inode));
    let addresses = seen.addresses.iter().map(ToString::to_string);
    let finding = Finding {
        kind: "net.neighbour",
        severity: Severity::Problem,
        reach: connections_to(machine, inode, address),
        what: format!("{address} is at two machines at {}{inside}", name(history, link)),
        evidence: vec![
            format!("link-level addresses: {}", some(addresses)),
            format!("{} times it was one again that it had been before", seen.returns),
        ],
        cause: "Two machines have this address, or two paths claim it: packets go now to the one, \
                now to the other, and connections stall or are reset."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(
                "find both by their link-level addresses (the table of the switch), and give one \
                 of them another IP address",
            ),
            Remedy {
                what: "ask who has it: more than one answer is proof".to_owned(),
                now: vec![format!("arping -D -c 3 -I {} {address}", name(history, link))],
                for_good: Vec::new(),
            }
            .entered_by(&history.place.enter),
        ],
    };
    Found::new(finding, path(inode, [key].into_iter()))
}

fn of_silent(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    silent: &Neighbours<'_>,
) -> Option<Found> {
    let ((link, address), _) = *silent.first()?;
    let reach: usize =
        silent.iter().map(|((_, address), _)| connections_to(machine, inode, *address)).sum();
    let inside = machine.inside(inode);
    let what = match silent.len() {
        1 => format!("{address} does not answer at {}{inside}", name(history, link)),
        many => format!("{} do not answer{inside}", plural(many, "neighbour")),
    };
    let lines = silent.iter().map(|((link, address), seen)| {
        let looks = seen.asked_looks;
        format!("{address} at {}, asked at {looks} looks", name(history, *link))
    });
    let there = |((_, address), _): &((u32, IpAddr), _)| {
        machine.namespace_of(inode, *address).filter(|there| *there != inode)
    };
    let on_this_machine: Vec<u64> = silent.iter().filter_map(there).collect();
    let finding = Finding {
        kind: "net.neighbour",
        severity: Severity::Warning,
        reach,
        what,
        evidence: vec![format!("no answer: {}", some(lines))],
        cause: why_silent(machine, &on_this_machine),
        remedies: vec![Remedy::by_hand(
            "see whether the machine is up and in the same network; on this side: ip neigh, ip \
             route get ADDRESS",
        )],
    };
    let mut path = path(inode, silent.iter().map(|(key, _)| *key));
    path.namespaces.extend(on_this_machine);
    Some(Found::new(finding, path))
}

/// Where the address is one of this machine, it is no machine that is down.
fn why_silent(machine: &Machine<'_>, there: &[u64]) -> String {
    let all = "Something is to be sent there, and nobody has the link-level address";
    match there.first().and_then(|there| machine.watch.namespaces.get(there)) {
        Some(history) => format!(
            "{all}. The address is one of {}, which does not answer the question: its interface \
             is down or in another network, or it ignores who asks (rp_filter, arp_ignore, \
             arp_filter).",
            history.place.name
        ),
        None => format!(
            "{all}: the machine is down, has another address or network mask, or is in another \
             VLAN."
        ),
    }
}

/// Sockets that have such an other end.
fn connections_to(machine: &Machine<'_>, inode: u64, address: IpAddr) -> usize {
    let is_it =
        |track: &&crate::Track| track.last.remote.ip().to_canonical() == address.to_canonical();
    machine.watch.of_namespace(inode).filter(is_it).count().max(1)
}
