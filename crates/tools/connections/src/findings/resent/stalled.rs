//! Connections that stand still: what was sent is sent again and again, and nothing comes back.
//!
//! Mechanism: the retransmission timer doubles with each time it fires, and begins anew with any
//! acknowledgement. So a socket whose timer has fired three times in succession has had no answer
//! for a second and more. Refuted by an acknowledgement within that time. A host that has gone is
//! no fault of a server: connections that came to a port of ours, where those of other hosts move,
//! are a note.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use network::sockets::{TcpInfo, TcpState};

use super::super::explain::{Found, Path};
use super::super::group::gained;
use super::super::machine::Machine;
use crate::watch::{Key, Track};
use findings::words::{plural, some, time};
use findings::{Finding, Remedy, Severity};

/// Times in succession that the timer fired.
const RETRIES_MIN: u8 = 3;
/// Nothing was acknowledged for so long.
const SILENT_MS: u32 = 1000;
/// The SYN of the side that opens counts as a byte that was acknowledged.
const SYN: u64 = 1;

/// Whether a connection stood still when it was seen last.
pub(super) fn stood_still(track: &Track) -> bool {
    let last = &track.last;
    let is_open = matches!(last.state, TcpState::Established | TcpState::CloseWait);
    last.info.filter(|_| is_open).is_some_and(|info| {
        last.retries >= RETRIES_MIN && info.unacked > 0 && info.last_acknowledged_ms >= SILENT_MS
    })
}

/// Whether it stands still at the last look.
fn is_stalled(machine: &Machine<'_>, track: &Track) -> bool {
    track.last_ns == machine.watch.ns && stood_still(track)
}

/// Bytes that are under way.
fn under_way(track: &Track) -> u32 {
    let unsent = track.last.info.and_then(|info| info.unsent_bytes).unwrap_or(0);
    track.last.send_queue.saturating_sub(unsent)
}

/// Less than a full segment stands still on it.
fn is_small(track: &Track) -> bool {
    track.last.info.is_some_and(|info| under_way(track) < info.send_mss)
}

fn to_host<'w>(
    machine: &Machine<'w>,
    namespace: u64,
    host: IpAddr,
) -> impl Iterator<Item = &'w Track> {
    let host = host.to_canonical();
    let tracks = machine.watch.of_namespace(namespace);
    tracks.filter(move |track| track.last.remote.ip().to_canonical() == host)
}

/// Small segments to a host stand still.
pub(in super::super) fn has_small(machine: &Machine<'_>, namespace: u64, host: IpAddr) -> bool {
    to_host(machine, namespace, host).any(|track| is_stalled(machine, track) && is_small(track))
}

/// A host answers nobody: connections to it are not opened, or no neighbour has its address.
pub(in super::super) fn is_gone(machine: &Machine<'_>, namespace: u64, host: IpAddr) -> bool {
    let history = machine.watch.namespaces.get(&namespace);
    let mut neighbours = history.into_iter().flat_map(|history| &history.neighbours);
    let host = host.to_canonical();
    let is_unanswered = |track: &Track| track.looks.syn_retries_max > 0;
    to_host(machine, namespace, host).any(is_unanswered)
        || neighbours.any(|((_, address), seen)| *address == host && seen.is_silent)
}

/// Hosts towards which connections stand still, but for those that have a finding of their own.
pub(super) fn findings(machine: &Machine<'_>, told: &BTreeSet<Key>) -> Vec<Found> {
    let mut hosts: BTreeMap<(u64, IpAddr), Vec<(Key, &Track)>> = BTreeMap::new();
    for (key, track) in &machine.watch.tracks {
        if !told.contains(key) && is_stalled(machine, track) {
            let at = (key.namespace, track.last.remote.ip().to_canonical());
            hosts.entry(at).or_default().push((*key, track));
        }
    }
    let found = |(at, hit): (_, Vec<(Key, &Track)>)| {
        let path = Path::of(machine, hit.iter().copied());
        Found::new(finding(machine, at, &hit), path)
    };
    hosts.into_iter().map(found).collect()
}

fn finding(machine: &Machine<'_>, (inode, host): (u64, IpAddr), hit: &[(Key, &Track)]) -> Finding {
    let retries = hit.iter().map(|(_, track)| track.last.retries).max().unwrap_or(0);
    let infos = hit.iter().filter_map(|(_, track)| track.last.info);
    let silent_ms = infos.map(|info| info.last_acknowledged_ms).max().unwrap_or(0);
    let lines = hit.iter().map(|(key, track)| machine.line(*key, track));
    let has_full = hit.iter().any(|(_, track)| !is_small(track));
    let mut evidence = vec![
        format!("stand still: {}", some(lines)),
        format!(
            "sent again up to {retries} times in succession, nothing acknowledged for up to {}",
            time(u64::from(silent_ms) * 1_000_000)
        ),
    ];
    evidence.extend(arrivals(machine, hit).map(|arrives| match arrives {
        Arrives::No => "the other end, on this machine, received nothing meanwhile".to_owned(),
        Arrives::Yes(count) => {
            format!("the other end, on this machine, received {count} segments meanwhile")
        }
    }));
    let mut remedies = vec![Remedy::by_hand(format!(
        "see whether the machine is there and where packets end: ping {host}, tracepath {host}"
    ))];
    if has_full {
        remedies.push(Remedy::by_hand(format!(
            "see whether large packets pass where small ones do: ping -M do -s 1400 {host}"
        )));
    }
    remedies.push(Remedy::by_hand(
        "look for rules that drop on both machines and between them: nft list ruleset, iptables \
         -L -v (a counter that grows)",
    ));
    remedies.push(Remedy::by_hand(
        "TCP_USER_TIMEOUT in the program, so that it notices sooner and opens another connection",
    ));
    Finding {
        kind: "tcp.stalled",
        severity: severity(machine, (inode, host), hit),
        reach: hit.len(),
        what: format!(
            "{} to {host} {} still: what is sent gets no answer{}",
            plural(hit.len(), "connection"),
            if hit.len() == 1 { "stands" } else { "stand" },
            machine.inside(inode)
        ),
        evidence,
        cause: why(machine, (inode, host), hit, has_full),
        remedies,
    }
}

fn severity(
    machine: &Machine<'_>,
    (inode, host): (u64, IpAddr),
    hit: &[(Key, &Track)],
) -> Severity {
    let came_here =
        |track: &Track| machine.listeners(inode, track.last.local.port()).next().is_some();
    if hit.iter().any(|(_, track)| !came_here(track)) {
        return Severity::Problem;
    }
    let ports: BTreeSet<u16> = hit.iter().map(|(_, track)| track.last.local.port()).collect();
    let others = machine.watch.of_namespace(inode).filter(|track| {
        ports.contains(&track.last.local.port()) && track.last.remote.ip().to_canonical() != host
    });
    let move_elsewhere = others.filter(|track| moves(track)).count();
    if move_elsewhere > 0 { Severity::Note } else { Severity::Warning }
}

/// Something came on it while we looked.
fn moves(track: &Track) -> bool {
    let (Some(first), Some(last)) = (&track.first.info, &track.last.info) else { return false };
    gained(first, last, |info: &TcpInfo| info.segments_in) > 0
}

/// Whether what is sent arrives at the other ends, where they are on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arrives {
    /// Nothing did while we looked, though something was sent.
    No,
    /// So many segments did, and none was acknowledged while we looked.
    Yes(u64),
}

fn arrivals(machine: &Machine<'_>, hit: &[(Key, &Track)]) -> Option<Arrives> {
    let gained = |track: &Track, of: fn(&TcpInfo) -> Option<u32>| {
        Some(gained(track.first.info.as_ref()?, track.last.info.as_ref()?, of))
    };
    let (mut sent, mut arrived, mut is_whole) = (0_u64, None, true);
    for (key, track) in hit {
        let Some((_, other)) = machine.other_end(*key, track) else { continue };
        sent += gained(track, |info| Some(info.retransmitted))?;
        arrived = Some(arrived.unwrap_or(0) + gained(other, |info| info.segments_in)?);
        // What arrived before it stood still says nothing.
        let silent_ms = track.last.info?.last_acknowledged_ms;
        is_whole &= u64::from(silent_ms) * 1_000_000 >= machine.watch.ns_positive();
    }
    match arrived? {
        0 if sent > 0 => Some(Arrives::No),
        arrived if arrived > 0 && is_whole => Some(Arrives::Yes(arrived)),
        _ => None,
    }
}

fn why(
    machine: &Machine<'_>,
    (inode, host): (u64, IpAddr),
    hit: &[(Key, &Track)],
    has_full: bool,
) -> String {
    let is_new = |track: &Track| {
        track.last.info.and_then(|info| info.bytes_acked).is_some_and(|bytes| bytes <= SYN)
    };
    let is_alive =
        to_host(machine, inode, host).any(|track| !is_stalled(machine, track) && moves(track));
    let size = if has_full {
        " Small segments with data have not been sent, or stand still, too: that only large \
         packets are dropped is not shown."
    } else {
        " Small segments stand still: the size of packets is not the cause."
    };
    let all = match arrivals(machine, hit) {
        Some(Arrives::No) => {
            "What is sent does not arrive at the other end: something on the way drops it \
                    (a firewall, a route that leads nowhere, a tunnel that is down)."
                .to_owned()
        }
        Some(Arrives::Yes(_)) => {
            "What is sent arrives, and the answers do not come back: something on the way \
                    back drops them, or this side does (a firewall, rp_filter, another route)."
                .to_owned()
        }
        None if is_gone(machine, inode, host) => {
            "The host answers nobody any more: it is down, or cut off.".to_owned()
        }
        None if is_alive => "The host is there, for other connections with it move. Something on \
                             the way drops what belongs to these: a firewall or a NAT that has \
                             forgotten them, or one that does not want what they carry."
            .to_owned(),
        None => {
            "Nothing comes back. What was seen cannot tell a host that is down or cut off from \
                 a firewall on the way that drops these packets."
                .to_owned()
        }
    };
    if hit.iter().all(|(_, track)| is_new(track)) {
        return format!("The handshake passed, and no data have since. {all}{size}");
    }
    if has_full { all } else { format!("{all}{size}") }
}
