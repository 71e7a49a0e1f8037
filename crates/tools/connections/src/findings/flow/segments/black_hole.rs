//! Full segments are never acknowledged while small ones pass.
//!
//! Mechanism: a part of the way takes only smaller packets than both ends agreed on, and the ICMP
//! message that says so is dropped (RFC 2923). The handshake and small segments pass; the first
//! full one is sent again and again. So something small has to have passed: data of the connection
//! itself (a handshake is none), acknowledgements of what came on it, or data of another connection
//! to the same host. Refuted by a small segment to that host that stands still as well, where the
//! host answers nobody (it is gone), by a full segment that was ever acknowledged on the
//! connection, and by other connections to the same host that have full segments acknowledged
//! meanwhile. One connection that came to a port of ours is not enough where nothing shows that its
//! host is still there.

use network::sockets::TcpInfo;

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member, Service, gained};
use crate::findings::machine::Machine;
use crate::findings::resent::stalled;
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// Retransmissions in succession, without an answer.
const RETRIES_MIN: u8 = 2;
/// Full segments that another connection had acknowledged.
const FULL_SEGMENTS: u64 = 10;

/// The stalled ones of a group, where full segments are why.
pub(super) fn stalled<'g, 'w>(
    machine: &Machine<'_>,
    group: &'g Group<'w>,
) -> Option<Vec<&'g Member<'w>>> {
    let stalled: Vec<&Member<'_>> =
        group.members.iter().filter(|member| is_stalled(member)).collect();
    let first = stalled.first()?;
    let host = first.track.last.remote.ip();
    let is_refuted = full_pass(machine, first)
        || stalled::has_small(machine, first.key.namespace, host)
        || stalled::is_gone(machine, first.key.namespace, host);
    let passes = stalled.iter().any(|member| small_passed(machine, member).is_some());
    // A client that has gone may have left one such connection.
    let is_sure = matches!(group.service, Service::There { .. })
        || stalled.len() > 1
        || stalled.iter().any(|member| moves(machine, member));
    (!is_refuted && passes && is_sure).then_some(stalled)
}

/// The host has been there while we looked.
fn moves(machine: &Machine<'_>, member: &Member<'_>) -> bool {
    let received = gained(member.first, member.last, |info: &TcpInfo| info.segments_in);
    member.track.is_new || received > 0 || others(machine, member).any(|other| other.received > 0)
}

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let stalled = stalled(machine, group)?;
    let first = stalled.first()?;
    let (mss, mtu) = (first.last.send_mss, first.last.path_mtu);
    let retries = stalled.iter().map(|member| member.track.last.retries).max().unwrap_or(0);
    let history = group.namespace(machine.watch)?;
    let host = first.track.last.remote.ip().to_canonical();
    let to = match group.service {
        Service::Here { .. } => format!("{host}, from {}", group.name(machine.watch)),
        Service::There { .. } => group.name(machine.watch),
    };
    let probing =
        Remedy::sysctl("let the kernel find the size by itself", "net.ipv4.tcp_mtu_probing", "1");
    let finding = Finding {
        kind: "tcp.mtu_black_hole",
        severity: Severity::Problem,
        reach: stalled.len(),
        what: format!("full segments to {to} never arrive, small ones do"),
        evidence: vec![
            format!("stalled: {}", some(stalled.iter().map(|member| member.line(machine)))),
            format!(
                "segments of {mss} bytes (path MTU {mtu}) sent again up to {retries} times, never \
                 acknowledged"
            ),
            format!("small ones pass: {}", passed(machine, &stalled)),
        ],
        cause: "A part of the way takes only smaller packets (a tunnel, a VPN, another MTU), and \
                the ICMP message that would say so is not sent or is dropped by a firewall. The \
                connection opens and stands still with the first full segment."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(format!(
                "find the size: ping -M do -s SIZE {host}; let ICMP \"fragmentation needed\" pass"
            )),
            Remedy::by_hand(
                "the same MTU everywhere on the way, or a smaller segment size at its narrow \
                 part: nft add rule ... tcp option maxseg size set rt mtu",
            ),
            probing.entered_by(&history.place.enter),
        ],
    };
    Some(Found::new(finding, group::path(machine, stalled.into_iter())))
}

/// A full segment waits for its acknowledgement, and no full one was ever acknowledged.
fn is_stalled(member: &Member<'_>) -> bool {
    let (last, info) = (&member.track.last, member.last);
    let (acked, mss) = (info.bytes_acked.unwrap_or(u64::MAX), u64::from(info.send_mss));
    let segments = info.data_segments_out.unwrap_or(0).saturating_sub(info.retransmitted);
    let were_small = acked < mss || acked.saturating_mul(4) < u64::from(segments) * mss;
    last.retries >= RETRIES_MIN
        && info.unacked > 0
        && last.send_queue >= info.send_mss
        && were_small
        && member.gained(|info| info.bytes_acked) < mss
}

/// What shows that small segments pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Passed {
    /// Small ones of the connection itself were acknowledged.
    Own,
    /// What came on it was acknowledged, for the other side does not send it again.
    Acknowledgement,
    /// Data of another connection to the same host.
    Other,
}

fn small_passed(machine: &Machine<'_>, member: &Member<'_>) -> Option<Passed> {
    // The SYN of the side that opens counts as a byte.
    const SYN: u64 = 1;
    let info = member.last;
    let received = gained(member.first, info, |info: &TcpInfo| info.segments_in);
    let looked = member.track.looks.all > 1;
    if info.bytes_acked.is_some_and(|bytes| bytes > SYN) {
        Some(Passed::Own)
    } else if looked && received == 0 && info.bytes_received.is_some_and(|bytes| bytes > 0) {
        Some(Passed::Acknowledgement)
    } else if others(machine, member).any(|other| other.acked > SYN) {
        Some(Passed::Other)
    } else {
        None
    }
}

fn passed(machine: &Machine<'_>, stalled: &[&Member<'_>]) -> String {
    let all: Vec<Passed> =
        stalled.iter().filter_map(|member| small_passed(machine, member)).collect();
    let lines = [
        (Passed::Own, "had some of its own acknowledged", "had some of their own acknowledged"),
        (
            Passed::Acknowledgement,
            "acknowledged what came, which was not sent again",
            "acknowledged what came, which was not sent again",
        ),
        (
            Passed::Other,
            "is beside another one whose data pass",
            "are beside others whose data pass",
        ),
    ];
    let line = |(passed, one, many): (Passed, &str, &str)| {
        let count = all.iter().filter(|it| **it == passed).count();
        let verb = if count == 1 { one } else { many };
        (count > 0).then(|| format!("{} {verb}", plural(count, "connection")))
    };
    lines.into_iter().filter_map(line).collect::<Vec<_>>().join(", ")
}

/// Another connection to the same host had many full segments acknowledged.
fn full_pass(machine: &Machine<'_>, member: &Member<'_>) -> bool {
    let mss = u64::from(member.last.send_mss);
    others(machine, member)
        .any(|other| other.acked >= mss * FULL_SEGMENTS && other.acked * 2 >= other.segments * mss)
}

/// What another connection moved during the watch.
struct Other {
    acked: u64,
    segments: u64,
    received: u64,
}

/// The other connections to the same host.
fn others(machine: &Machine<'_>, member: &Member<'_>) -> impl Iterator<Item = Other> {
    let host = member.track.last.remote.ip().to_canonical();
    let cookie = member.key.cookie;
    let tracks = machine.watch.of_namespace(member.key.namespace);
    let same = tracks.filter(move |track| {
        track.last.remote.ip().to_canonical() == host && track.last.cookie != cookie
    });
    same.filter_map(|track| {
        let (first, last) = (track.first.info.as_ref()?, track.last.info.as_ref()?);
        Some(Other {
            acked: gained(first, last, |info: &TcpInfo| info.bytes_acked),
            segments: gained(first, last, |info: &TcpInfo| info.data_segments_out),
            received: gained(first, last, |info: &TcpInfo| info.segments_in),
        })
    })
}
