//! No route leads to an address.
//!
//! Mechanism: the kernel looks for a route before it sends a SYN. Where none matches, or the one
//! that does refuses, `connect(2)` fails at once, and no socket, counter or packet shows it. The
//! error says which of these it was. Refuted, as a fault, where the same port at an address of the
//! other family answers: programs try IPv6 first on machines that have none.

use std::net::SocketAddr;

use observe::tracepoints::NoRoute;

use super::super::explain::Found;
use super::super::machine::Machine;
use super::place::{Place, Places, path};
use super::refused::{OFTEN_HZ, answers_instead, is_often, whom};
use findings::{Finding, Remedy, Severity};

pub(super) fn finding(
    machine: &Machine<'_>,
    places: &Places<'_>,
    ((inode, remote), place): ((u64, SocketAddr), &Place<'_>),
) -> Option<Found> {
    let count = place.sum(|failed| failed.unrouted);
    let why = place.failed.iter().filter_map(|failed| failed.no_route).next_back()?;
    if !is_often(machine, count, 1) {
        return None;
    }
    let mut evidence = vec![format!(
        "{count} attempts in {:.1} s ended at once with {}; nothing was sent",
        machine.watch.seconds(),
        error(why)
    )];
    let other = answers_instead(places, (inode, remote), count);
    let severity = match &other {
        Some((other, opened)) => {
            evidence.push(format!("meanwhile {opened} connections to {other}"));
            Severity::Note
        }
        None if is_often(machine, count, OFTEN_HZ) => Severity::Problem,
        None => Severity::Warning,
    };
    let inside = machine.inside(inode);
    let finding = Finding {
        kind: "tcp.no_route",
        severity,
        reach: usize::try_from(count).unwrap_or(usize::MAX),
        what: format!("{} cannot connect to {remote}{inside}: no route leads there", whom(place)),
        evidence,
        cause: cause(why, remote),
        remedies: remedies(machine, (inode, remote), why),
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
}

fn error(why: NoRoute) -> &'static str {
    match why {
        NoRoute::None => "ENETUNREACH",
        NoRoute::Unreachable => "EHOSTUNREACH",
        NoRoute::Prohibit => "EACCES",
        NoRoute::Blackhole => "EINVAL",
    }
}

fn cause(why: NoRoute, remote: SocketAddr) -> String {
    let of_type = |name: &str| {
        format!("A route of this machine that contains {} has the type {name}.", remote.ip())
    };
    match why {
        NoRoute::None => format!(
            "No route of this machine contains {}, and there is no default route of {}.",
            remote.ip(),
            if remote.is_ipv4() { "IPv4" } else { "IPv6" }
        ),
        NoRoute::Unreachable => of_type("unreachable"),
        NoRoute::Prohibit => of_type("prohibit"),
        NoRoute::Blackhole => of_type("blackhole"),
    }
}

fn remedies(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    why: NoRoute,
) -> Vec<Remedy> {
    let history = machine.watch.namespaces.get(&inode);
    let enter = history.map_or("", |history| &*history.place.enter);
    let (family, ip) = (if remote.is_ipv4() { "-4" } else { "-6" }, remote.ip());
    let see = Remedy {
        what: "see the routes that contain it".to_owned(),
        now: vec![format!("ip {family} route show table all match {ip}")],
        for_good: Vec::new(),
    };
    let mend = match why {
        NoRoute::None => format!("add a route to {ip}, or a default route"),
        _ => format!("remove that route, or add one that contains {ip} more closely"),
    };
    vec![
        see.entered_by(enter),
        Remedy::by_hand(format!("{mend}; or correct the address that the program asks")),
    ]
}
