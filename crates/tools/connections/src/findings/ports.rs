//! The local ports to one destination are used up.
//!
//! Mechanism: a connection takes a port of `ip_local_port_range`, and after its end `TIME_WAIT`
//! keeps it for a minute. Ports are counted for each pair of our address and the destination, as
//! the kernel tells connections apart; those of `ip_local_reserved_ports` are not given. Refuted
//! where the kernel takes ports out of `TIME_WAIT` again (`tcp_tw_reuse` with timestamps): there
//! only open connections count. An attempt that ended before it had a port needs no count.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use network::sockets::TcpState;

use super::super::history::NamespaceHistory;
use super::super::watch::{Key, Track};
use super::ends::plain;
use super::explain::{Found, Path};
use super::machine::Machine;
use findings::words::{percent, some};
use findings::{Finding, Remedy, Severity};

/// Parts of a hundred of the range that are in use.
const NEARLY: u64 = 80;
const FULL: u64 = 97;
/// Attempts that failed for want of a port, which are a finding by themselves.
const IN_VAIN_MIN: u64 = 10;
/// `net.ipv4.ip_local_port_range` of a kernel as it comes.
const RANGE: (u16, u16) = (32_768, 60_999);
const WIDER: &str = "1024 65535";

/// Ports that connections to one destination have.
#[derive(Debug, Default)]
struct Used<'w> {
    ports: BTreeSet<u16>,
    waiting: usize,
    some: Vec<(Key, &'w Track)>,
    owners: BTreeSet<String>,
}

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (inode, history) in &machine.watch.namespaces {
        let given = Given::of(history);
        for ((local, remote), used) in of_namespace(machine, *inode, history, &given) {
            let count = u64::try_from(used.ports.len()).unwrap_or(u64::MAX);
            let is_nearly = count * 100 >= given.count() * NEARLY;
            if is_nearly || in_vain(machine, remote) >= IN_VAIN_MIN {
                let found_here = (*inode, history);
                let finding = finding(machine, found_here, (local, remote, &used), &given);
                let mut path = Path::default();
                path.add_ends(machine, *inode, (local, remote.ip()));
                found.push(Found::new(finding, path));
            }
        }
    }
    found
}

/// Attempts to reach a place that failed because there was no port.
fn in_vain(machine: &Machine<'_>, remote: SocketAddr) -> u64 {
    let failed = machine.watch.failures.iter().filter(|(_, to, _)| plain(*to) == remote);
    failed.map(|(.., failed)| failed.without_port).fold(0, u64::saturating_add)
}

/// Ports that the kernel gives to connections.
#[derive(Debug)]
struct Given {
    range: (u16, u16),
    /// Parts of the range that it does not give.
    reserved: Vec<(u16, u16)>,
}

impl Given {
    fn of(history: &NamespaceHistory) -> Self {
        let setting = |name: &str| history.settings.get(name).map_or("", |text| text);
        let range = |text: &str, between| {
            let (first, last) = text.split_once(between).unwrap_or((text, text));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        };
        let reserved = setting("ip_local_reserved_ports").split(',');
        Self {
            range: range(setting("ip_local_port_range"), ' ').unwrap_or(RANGE),
            reserved: reserved.filter_map(|text| range(text, '-')).collect(),
        }
    }

    fn has(&self, port: u16) -> bool {
        let is_in = |(first, last): (u16, u16)| (first..=last).contains(&port);
        is_in(self.range) && !self.reserved.iter().copied().any(is_in)
    }

    fn count(&self) -> u64 {
        let ports = self.range.0..=self.range.1;
        u64::try_from(ports.filter(|port| self.has(*port)).count()).unwrap_or(u64::MAX)
    }

    fn reserved_count(&self) -> u64 {
        u64::from(self.range.1.saturating_sub(self.range.0)) + 1 - self.count()
    }
}

/// Whether a port in `TIME_WAIT` can be had again after a second.
fn is_reused(history: &NamespaceHistory, remote: IpAddr) -> bool {
    let reuse = history.number("tcp_tw_reuse").unwrap_or(2);
    history.is_on("tcp_timestamps") && (reuse == 1 || (reuse == 2 && remote.is_loopback()))
}

fn of_namespace<'w>(
    machine: &Machine<'w>,
    inode: u64,
    history: &NamespaceHistory,
    given: &Given,
) -> BTreeMap<(IpAddr, SocketAddr), Used<'w>> {
    let mut all: BTreeMap<(IpAddr, SocketAddr), Used<'w>> = BTreeMap::new();
    let key = |cookie| Key { namespace: inode, cookie };
    for (key, track) in machine.watch.tracks.range(key(0)..=key(u64::MAX)) {
        let (local, remote) = (plain(track.last.local), plain(track.last.remote));
        let is_there = track.last_ns == machine.watch.ns && track.last.state != TcpState::Listen;
        // What came to a listener of ours shares its port.
        let is_accepted = machine.listeners(inode, local.port()).next().is_some();
        if !is_there || is_accepted || !given.has(local.port()) {
            continue;
        }
        let is_waiting = track.last.state == TcpState::TimeWait;
        let used = all.entry((local.ip(), remote)).or_default();
        used.owners.extend(track.owner.as_ref().map(ToString::to_string));
        if is_waiting && is_reused(history, remote.ip()) {
            continue;
        }
        used.waiting += usize::from(is_waiting);
        used.ports.insert(local.port());
        if used.some.is_empty() {
            used.some.push((*key, track));
        }
    }
    all
}

fn finding(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    (local, remote, used): (IpAddr, SocketAddr, &Used<'_>),
    given: &Given,
) -> Finding {
    let (count, all) = (u64::try_from(used.ports.len()).unwrap_or(u64::MAX), given.count());
    let in_vain = in_vain(machine, remote);
    let is_full = count * 100 >= all * FULL || in_vain >= IN_VAIN_MIN;
    let inside = machine.inside(inode);
    let share = percent(count, all);
    let state = if is_full { "used up" } else { "nearly used up" };
    let mut evidence = vec![
        format!("{count} of {all} ports of net.ipv4.ip_local_port_range ({share}) from {local}"),
        format!("{} of them in TIME_WAIT, {} open", used.waiting, used.ports.len() - used.waiting),
    ];
    let reserved = given.reserved_count();
    if reserved > 0 {
        evidence.push(format!(
            "{reserved} more of that range are taken out by net.ipv4.ip_local_reserved_ports"
        ));
    }
    if in_vain > 0 {
        evidence.push(format!("{in_vain} attempts failed because there was no port"));
    }
    let mut owners = used.owners.clone();
    if owners.is_empty() {
        owners.extend(askers(machine, remote));
    }
    if owners.is_empty() {
        evidence.push("no process had one of them open at a look".to_owned());
    } else {
        evidence.push(format!("opened by {}", some(owners.into_iter())));
    }
    Finding {
        kind: "tcp.ports",
        severity: if is_full { Severity::Problem } else { Severity::Warning },
        reach: used.ports.len(),
        what: format!("the local ports for connections to {remote} are {state}{inside}"),
        evidence,
        cause: "Each connection to the same place needs a port of its own, and keeps it for a \
                minute after its end (TIME_WAIT). Without a free one connect() searches long and \
                fails: cannot assign requested address."
            .to_owned(),
        remedies: remedies(history, (reserved, used.waiting)),
    }
}

/// Processes that could not open a connection there.
fn askers(machine: &Machine<'_>, remote: SocketAddr) -> BTreeSet<String> {
    let failed = machine.watch.failures.iter().filter(|(_, to, _)| plain(*to) == remote);
    failed.filter_map(|(.., failed)| Some(failed.by.as_ref()?.owner.to_string())).collect()
}

fn remedies(history: &NamespaceHistory, (reserved, waiting): (u64, usize)) -> Vec<Remedy> {
    let mut remedies =
        vec![Remedy::by_hand("keep connections open and use them again (a pool, HTTP keep-alive)")];
    if reserved > 0 {
        remedies.push(Remedy::by_hand(
            "take ports that nothing needs out of net.ipv4.ip_local_reserved_ports",
        ));
    }
    let may_reuse = history.number("tcp_tw_reuse") != Some(1) && history.is_on("tcp_timestamps");
    if may_reuse && waiting > 0 {
        let what = "take ports out of TIME_WAIT again after a second";
        remedies.push(Remedy::sysctl(what, "net.ipv4.tcp_tw_reuse", "1"));
    }
    remedies.push(Remedy::sysctl("a wider range", "net.ipv4.ip_local_port_range", WIDER));
    let enter = &history.place.enter;
    remedies.into_iter().map(|remedy| remedy.entered_by(enter)).collect()
}
