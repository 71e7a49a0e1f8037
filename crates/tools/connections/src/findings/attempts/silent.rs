//! Nobody answers.

use std::net::SocketAddr;

use super::super::ends::plain;
use super::super::explain::Found;
use super::super::machine::{Machine, program};
use super::super::net::reverse_path;
use super::super::queue;
use super::place::{Place, path};
use findings::words::{plural, some, time};
use findings::{Finding, Remedy, Severity};

/// Attempts that were given up before a SYN was sent again.
const GIVEN_UP_MIN: u64 = 3;
/// One in so many without an answer is no finding.
const SHARE: usize = 20;

pub(super) fn finding(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> Option<Found> {
    let given_up = place.sum(|failed| failed.given_up);
    let silent = place.silent.len().max(usize::try_from(given_up).unwrap_or(usize::MAX));
    let is_one = !place.silent.is_empty() || given_up >= GIVEN_UP_MIN;
    if !is_one || silent.saturating_mul(SHARE) < place.opened() {
        return None;
    }
    let askers = place.askers();
    let whose =
        if askers.is_empty() { String::new() } else { format!(" of {}", some(askers.into_iter())) };
    let (cause, remedies) = why(machine, (inode, remote), (place, silent));
    let finding = Finding {
        kind: "tcp.no_answer",
        severity: if place.opened() > 0 { Severity::Warning } else { Severity::Problem },
        reach: silent,
        what: format!("connections{whose} to {remote} get no answer{}", machine.inside(inode)),
        evidence: evidence(machine, place, given_up),
        cause,
        remedies,
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
}

fn evidence(machine: &Machine<'_>, place: &Place<'_>, given_up: u64) -> Vec<String> {
    let longest_ns = place.failed.iter().map(|failed| failed.longest_ns).max().unwrap_or(0);
    let retries = place.silent.iter().map(|(_, track)| track.looks.syn_retries_max).max();
    let mut evidence = Vec::new();
    if !place.silent.is_empty() {
        let lines = place.silent.iter().map(|(key, track)| machine.line(*key, track));
        let retries = retries.unwrap_or(0);
        evidence.push(format!("SYN sent again up to {retries} times: {}", some(lines)));
    }
    if given_up > 0 {
        evidence.push(format!("{given_up} given up after up to {}", time(longest_ns)));
    }
    evidence.push(format!("{} to it opened meanwhile", plural(place.opened(), "connection")));
    evidence
}

/// The first of these that nothing refutes.
fn why(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    (place, silent): (&Place<'_>, usize),
) -> (String, Vec<Remedy>) {
    let dropped = reverse_path::dropped(machine, inode);
    if dropped >= u64::try_from(silent).unwrap_or(u64::MAX) {
        let cause = format!(
            "The answers come back and are dropped here: {dropped} packets came in by an interface \
             that the way to their sender does not leave by, which strict reverse path filtering \
             (rp_filter) refuses{}.",
            machine.inside(inode)
        );
        return (cause, reverse_path::remedies(machine, inode));
    }
    let there = machine.namespace_of(inode, remote.ip());
    let listener = there.and_then(|there| machine.listeners(there, remote.port()).next());
    if let (Some(there), Some(listener)) = (there, listener) {
        let program = program(listener.owner.as_deref());
        let inside = machine.inside(there);
        return match queue::drops(listener) {
            Some(0) => (
                format!(
                    "{program} listens there{inside}, and its queue was never full while we \
                         looked: a firewall on the way drops the packets."
                ),
                on_the_way(remote),
            ),
            Some(drops) if queue::has_overflowed(machine, there) == Some(false) => (
                format!(
                    "{program} listens there{inside}, and dropped {drops} attempts while we \
                         looked, though its queue of connections to be accepted had space: more \
                         were half-open than it may have, as in a flood of SYNs."
                ),
                queue::remedies_of_half_open(machine, there),
            ),
            Some(drops) => (
                format!(
                    "{program} listens there{inside}, and its queue was full {drops} times \
                         while we looked."
                ),
                queue::remedies(machine, there, listener),
            ),
            None => (
                format!(
                    "{program} listens there{inside}: a firewall on the way drops the packets, \
                         or its queue was full when they came."
                ),
                on_the_way(remote),
            ),
        };
    }
    let cause = if place.opened() > 0 {
        "Some attempts are answered and others are not: packets are lost on the way, or the queue \
         of the listener was full when they came."
    } else if host_is_alive(machine, (inode, remote)) {
        "The host is there, for other connections with it move; a firewall drops what is sent to \
         this port."
    } else {
        "Nothing comes back, not even a refusal: a firewall drops the packets, the host is down, \
         or the address leads nowhere."
    };
    (cause.to_owned(), on_the_way(remote))
}

fn on_the_way(remote: SocketAddr) -> Vec<Remedy> {
    vec![
        Remedy::by_hand(format!(
            "see whether the machine is there and where packets end: ping {0}, tracepath {0}",
            remote.ip()
        )),
        Remedy::by_hand(
            "look for rules that drop on both machines: nft list ruleset, iptables -L -v (a \
             counter that grows); a rule that rejects would fail at once instead",
        ),
    ]
}

/// Something came from the host on another connection.
fn host_is_alive(machine: &Machine<'_>, (inode, remote): (u64, SocketAddr)) -> bool {
    machine.watch.of_namespace(inode).any(|track| {
        let (first, last) = (&track.first.info, &track.last.info);
        let segments =
            |info: &Option<network::sockets::TcpInfo>| info.and_then(|it| it.segments_in);
        plain(track.last.remote).ip() == remote.ip() && segments(last) > segments(first)
    })
}
