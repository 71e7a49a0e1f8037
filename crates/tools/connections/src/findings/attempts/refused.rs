//! Somebody refuses, or resets what was opened.
//!
//! Refuted, as a fault, where the same port at the address of the other family answers about as
//! often: a name with an address of each has both tried, one after the other (RFC 8305), and the
//! refusal costs a round trip.

use std::net::SocketAddr;

use super::super::explain::Found;
use super::super::machine::Machine;
use super::place::{Place, Places, path};
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// Fewer are no finding, nor is less than one a second.
const COUNT_MIN: u64 = 10;
/// So many a second stop a program rather than cost it something.
pub(super) const OFTEN_HZ: u64 = 5;

pub(super) fn is_often(machine: &Machine<'_>, count: u64, times: u64) -> bool {
    let seconds = (machine.watch.ns_positive() / 1_000_000_000).max(1);
    count >= COUNT_MIN && count >= seconds.saturating_mul(times)
}

pub(super) fn whom(place: &Place<'_>) -> String {
    let askers = place.askers();
    if askers.is_empty() {
        "a process that had asked before".to_owned()
    } else {
        some(askers.into_iter())
    }
}

pub(super) fn finding(
    machine: &Machine<'_>,
    places: &Places<'_>,
    ((inode, remote), place): ((u64, SocketAddr), &Place<'_>),
) -> Option<Found> {
    let count = place.sum(|failed| failed.refused);
    if !is_often(machine, count, 1) {
        return None;
    }
    let resets = place.sum(|failed| failed.resets);
    let mut evidence = vec![format!(
        "{count} refused in {:.1} s, {resets} of them by a reset; {} opened",
        machine.watch.seconds(),
        plural(place.opened(), "connection")
    )];
    let other = answers_instead(places, (inode, remote), count);
    let (severity, cause, remedies) = if let Some((other, opened)) = other {
        evidence.push(format!("meanwhile {} to {other}", plural(opened, "connection")));
        (Severity::Note, second_choice(remote, other), vec![both_families(remote)])
    } else {
        let is_problem = is_often(machine, count, OFTEN_HZ) && place.opened() == 0;
        let severity = if is_problem { Severity::Problem } else { Severity::Warning };
        let cause = why_refused(machine, (inode, remote), resets > 0);
        (severity, cause, remedies(machine, (inode, remote)))
    };
    let finding = Finding {
        kind: "tcp.refused",
        severity,
        reach: usize::try_from(count).unwrap_or(usize::MAX),
        what: format!("{remote} refuses connections of {}{}", whom(place), machine.inside(inode)),
        evidence,
        cause,
        remedies,
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
}

/// The same port at an address of the other family, where connections were opened meanwhile.
pub(super) fn answers_instead(
    places: &Places<'_>,
    (inode, remote): (u64, SocketAddr),
    count: u64,
) -> Option<(SocketAddr, usize)> {
    let other = places.iter().filter(|((namespace, other), _)| {
        *namespace == inode && other.port() == remote.port() && other.is_ipv4() != remote.is_ipv4()
    });
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let answers = other.map(|((_, other), place)| (*other, place.opened()));
    answers.filter(|(_, opened)| opened.saturating_mul(2) >= count).max_by_key(|(_, it)| *it)
}

fn second_choice(remote: SocketAddr, other: SocketAddr) -> String {
    format!(
        "A name has both addresses: the program tries {} first, is refused at once, and is served \
         at {}. That costs a round trip each time.",
        remote.ip(),
        other.ip()
    )
}

fn both_families(remote: SocketAddr) -> Remedy {
    let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
    Remedy::by_hand(format!(
        "have the program that is asked listen at {family}, too, or ask for the other address"
    ))
}

fn remedies(machine: &Machine<'_>, (inode, remote): (u64, SocketAddr)) -> Vec<Remedy> {
    let there = machine.namespace_of(inode, remote.ip());
    let has_listener =
        there.is_some_and(|there| machine.listeners(there, remote.port()).next().is_some());
    let serve = if has_listener {
        format!("have the program that listens at port {} listen at this address", remote.port())
    } else {
        format!("start the program that is to listen at port {}", remote.port())
    };
    vec![
        Remedy::by_hand(format!("{serve}, or correct the address")),
        Remedy::by_hand("let the program that asks wait longer from attempt to attempt"),
    ]
}

/// Connections that were opened, and reset before the program had closed them.
pub(super) fn reset(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> Option<Found> {
    let count = place.sum(|failed| failed.reset_open);
    if !is_often(machine, count, 1) {
        return None;
    }
    let (cause, counted) = why_reset(machine, (inode, remote), count);
    let mut evidence =
        vec![format!("{count} reset after they were opened, in {:.1} s", machine.watch.seconds())];
    evidence.extend(counted);
    let finding = Finding {
        kind: "tcp.reset",
        severity: Severity::Warning,
        reach: usize::try_from(count).unwrap_or(usize::MAX),
        what: format!(
            "{remote} resets open connections of {}{}",
            whom(place),
            machine.inside(inode)
        ),
        evidence,
        cause,
        remedies: vec![
            Remedy::by_hand(
                "see what the program that is asked says in its log at these moments, or whether \
                 it ends",
            ),
            Remedy::by_hand(
                "see who sends the resets: tcpdump -nn -v 'tcp[tcpflags] & tcp-rst != 0' at both \
                 sides (another TTL than that of the data is a box on the way)",
            ),
        ],
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
}

/// Why they are reset, as the counters say of the other side where it is on this machine.
fn why_reset(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    count: u64,
) -> (String, Option<String>) {
    /// Counters of resets that a program causes (`__tcp_close`), and how.
    const ABORTS: [(&str, &str); 2] = [
        ("TcpExtTCPAbortOnClose", "closes them with data that it has not read"),
        ("TcpExtTCPAbortOnData", "closes them with SO_LINGER set to 0"),
    ];
    let there = machine.namespace_of(inode, remote.ip());
    let history = there.and_then(|there| machine.watch.namespaces.get(&there));
    let Some((there, history)) = there.zip(history) else {
        let cause = "The program at the other end closes them with data unread or ends, or a \
                     firewall or load balancer on the way resets them. What was seen here cannot \
                     tell.";
        return (cause.to_owned(), None);
    };
    let owner = machine.listeners(there, remote.port()).find_map(|track| track.owner.clone());
    let program = owner.map_or_else(|| "the program there".to_owned(), |owner| owner.to_string());
    let inside = machine.inside(there);
    let gained = |(name, how): &(&'static str, &'static str)| (*name, *how, history.gained(name));
    let aborts = ABORTS.iter().map(gained).max_by_key(|(.., gained)| *gained);
    match aborts.filter(|(.., gained)| gained.saturating_mul(2) >= count) {
        Some((name, how, gained)) => (
            format!("The other end is on this machine: {program}{inside} {how}."),
            Some(format!("{name}: {gained} meanwhile{inside}")),
        ),
        None => (
            format!(
                "No program{inside} has closed as many with a reset: a firewall on the way \
                     sends them, or {program} ends with its connections open."
            ),
            None,
        ),
    }
}

fn why_refused(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    is_reset: bool,
) -> String {
    let there = machine.namespace_of(inode, remote.ip());
    if !is_reset {
        return "A firewall or a router on the way rejects the packets, or the host cannot be \
                reached (an ICMP message ended the attempts, not a reset)."
            .to_owned();
    }
    let Some(there) = there else {
        return "Nobody listens at that port there, or a firewall rejects the connection with a \
                reset."
            .to_owned();
    };
    let inside = machine.inside(there);
    let listeners: Vec<String> = machine
        .listeners(there, remote.port())
        .map(|track| match &track.owner {
            Some(owner) => format!("{owner} at {}", track.last.local),
            None => track.last.local.to_string(),
        })
        .collect();
    if listeners.is_empty() {
        format!("Nobody listens at port {} on this machine{inside}.", remote.port())
    } else {
        let who = some(listeners.into_iter());
        format!(
            "There is a listener{inside}: {who}. It listens at another address, had not begun \
             yet, or a firewall rejects the connection."
        )
    }
}
