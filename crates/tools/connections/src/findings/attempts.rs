//! Connections that cannot be opened: nobody answers, or somebody refuses.
//!
//! Mechanism: a SYN that is not answered is sent again after a second, then after two, four and so
//! on; a reset, or an ICMP message, ends the attempt at once. So an attempt whose SYN was sent
//! again got no answer, and one that ended within a round trip was refused. Refuted for a place
//! where nearly all other attempts succeed, and by an attempt that has not yet waited a second.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use network::sockets::TcpState;

use super::super::tally::Failed;
use super::super::watch::{Key, Track};
use super::ends::plain;
use super::explain::{Found, Path};
use super::machine::Machine;
use findings::words::{plural, some, time};
use findings::{Finding, Remedy, Severity};

/// Attempts that were given up before a SYN was sent again.
const GIVEN_UP_MIN: u64 = 3;
/// One in so many without an answer is no finding.
const SHARE: usize = 20;
const REFUSED_MIN: u64 = 10;
/// So many a second stop a program rather than cost it something.
const OFTEN_HZ: u64 = 5;

/// Attempts to reach one place from one namespace.
#[derive(Debug, Default)]
struct Place<'w> {
    /// Sockets whose SYN was sent again.
    silent: Vec<(Key, &'w Track)>,
    /// Connections that were opened meanwhile.
    opened: usize,
    failed: Vec<&'w Failed>,
}

impl Place<'_> {
    fn sum(&self, of: fn(&Failed) -> u64) -> u64 {
        self.failed.iter().map(|failed| of(failed)).fold(0, u64::saturating_add)
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
    let found = places
        .iter()
        .flat_map(|(at, place)| [no_answer(machine, *at, place), refused(machine, *at, place)]);
    found.flatten().collect()
}

fn places<'w>(machine: &Machine<'w>) -> Places<'w> {
    let mut places: Places<'w> = BTreeMap::new();
    for (key, track) in &machine.watch.tracks {
        let is_silent = track.looks.syn_retries_max > 0;
        let is_opened =
            track.is_new && !matches!(track.last.state, TcpState::SynSent | TcpState::Listen);
        let is_ours = machine.listeners(key.namespace, track.last.local.port()).next().is_none();
        if is_ours && (is_silent || is_opened) {
            let at = (key.namespace, plain(track.last.remote));
            let place = places.entry(at).or_default();
            place.opened += usize::from(is_opened);
            place.silent.extend(is_silent.then_some((*key, track)));
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

fn no_answer(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> Option<Found> {
    let given_up = place.sum(|failed| failed.given_up);
    let silent = place.silent.len().max(usize::try_from(given_up).unwrap_or(usize::MAX));
    let is_one = !place.silent.is_empty() || given_up >= GIVEN_UP_MIN;
    if !is_one || silent.saturating_mul(SHARE) < place.opened {
        return None;
    }
    let askers = place.askers();
    let whose =
        if askers.is_empty() { String::new() } else { format!(" of {}", some(askers.into_iter())) };
    let inside = machine.inside(inode);
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
    evidence.push(format!("{} to it opened meanwhile", plural(place.opened, "connection")));
    let finding = Finding {
        kind: "tcp.no_answer",
        severity: if place.opened > 0 { Severity::Warning } else { Severity::Problem },
        reach: silent,
        what: format!("connections{whose} to {remote} get no answer{inside}"),
        evidence,
        cause: why_silent(machine, (inode, remote), place),
        remedies: vec![
            Remedy::by_hand(format!(
                "see whether the machine is there and where packets end: ping {0}, tracepath {0}",
                remote.ip()
            )),
            Remedy::by_hand(
                "look for rules that drop on both machines: nft list ruleset, iptables -L -v \
                 (a counter that grows); a rule that rejects would fail at once instead",
            ),
        ],
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
}

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

fn why_silent(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> String {
    let there = machine.namespace_of(inode, remote.ip());
    let listener = there.and_then(|there| machine.listeners(there, remote.port()).next());
    if let (Some(there), Some(listener)) = (there, listener) {
        let owner = listener.owner.as_ref();
        let program = owner.map_or_else(|| "a program".to_owned(), ToString::to_string);
        return format!(
            "{program} listens there{}: a firewall on the way drops the packets, or its queue was \
             full when they came.",
            machine.inside(there)
        );
    }
    if place.opened > 0 {
        return "Some attempts are answered and others are not: packets are lost on the way, or \
                the queue of the listener was full when they came."
            .to_owned();
    }
    if host_is_alive(machine, (inode, remote)) {
        return "The host is there, for other connections with it move; a firewall drops what is \
                sent to this port."
            .to_owned();
    }
    "Nothing comes back, not even a refusal: a firewall drops the packets, the host is down, or \
     the address leads nowhere."
        .to_owned()
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

fn refused(
    machine: &Machine<'_>,
    (inode, remote): (u64, SocketAddr),
    place: &Place<'_>,
) -> Option<Found> {
    let count = place.sum(|failed| failed.refused);
    let seconds = (machine.watch.ns_positive() / 1_000_000_000).max(1);
    if count < REFUSED_MIN || count < seconds {
        return None;
    }
    let askers = place.askers();
    let whom = if askers.is_empty() {
        "a process that had asked before".to_owned()
    } else {
        some(askers.into_iter())
    };
    let resets = place.sum(|failed| failed.resets);
    let is_often = count >= seconds * OFTEN_HZ && place.opened == 0;
    let finding = Finding {
        kind: "tcp.refused",
        severity: if is_often { Severity::Problem } else { Severity::Warning },
        reach: usize::try_from(count).unwrap_or(usize::MAX),
        what: format!("{remote} refuses connections of {whom}{}", machine.inside(inode)),
        evidence: vec![format!(
            "{count} refused in {:.1} s, {resets} of them by a reset; {} opened",
            machine.watch.seconds(),
            plural(place.opened, "connection")
        )],
        cause: why_refused(machine, (inode, remote), resets > 0),
        remedies: vec![
            Remedy::by_hand(format!(
                "start the program that is to listen at port {}, or correct the address",
                remote.port()
            )),
            Remedy::by_hand("let the program that asks wait longer from attempt to attempt"),
        ],
    };
    Some(Found::new(finding, path(machine, (inode, remote), place)))
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
