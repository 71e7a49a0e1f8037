//! Datagrams are dropped because the program that they are for does not read.
//!
//! Mechanism: the queue of a UDP socket holds as much as its receive buffer; what comes then is
//! dropped, and counted at the socket and as `UdpRcvbufErrors`. Both have to move: the count of the
//! socket alone also has wrong checksums and what a filter of the program did not want.

use units::ByteSize;

use super::super::explain::{Found, Path};
use super::super::machine::{Machine, program};
use crate::{Key, NamespaceHistory, UdpTrack};
use findings::{Finding, Remedy, Severity};

/// Fewer are no finding.
const DROPS_MIN: u64 = 10;

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let all = machine.watch.namespaces.iter();
    all.flat_map(|(inode, history)| of_namespace(machine, *inode, history)).collect()
}

fn of_namespace(machine: &Machine<'_>, inode: u64, history: &NamespaceHistory) -> Vec<Found> {
    let full = history.gained("UdpRcvbufErrors") + history.gained("Udp6RcvbufErrors");
    if full < DROPS_MIN {
        return Vec::new();
    }
    let key = |cookie| Key { namespace: inode, cookie };
    let sockets = machine.watch.udp.range(key(0)..=key(u64::MAX)).map(|(_, track)| track);
    // More than all buffers together refused were dropped by a filter, or by their checksums.
    let may_be = |drops: u64| drops >= DROPS_MIN && drops <= full;
    let mut hit: Vec<&UdpTrack> =
        sockets.filter(|track| may_be(u64::from(track.drops()))).collect();
    // Not all of them were full then: those that were seen so come first.
    let dropped: u64 = hit.iter().map(|track| u64::from(track.drops())).sum();
    if dropped > full && hit.iter().any(|track| was_full(track)) {
        hit.retain(|track| was_full(track));
    }
    if hit.is_empty() {
        return vec![of_unknown(machine, inode, full)];
    }
    hit.into_iter().map(|track| of_socket(machine, (inode, history), track, full)).collect()
}

fn of_socket(
    machine: &Machine<'_>,
    (inode, history): (u64, &NamespaceHistory),
    track: &UdpTrack,
    full: u64,
) -> Found {
    let (local, drops) = (track.last.local, track.drops());
    let program = program(track.owner.as_deref());
    let buffer = track.last.receive_buffer;
    let cause = if was_full(track) {
        "The program takes datagrams out more slowly than they come: it is busy with something \
         else, or waits. What does not fit into the buffer of its socket is dropped."
    } else {
        "Datagrams come in bursts that do not fit into the buffer of the socket; between them the \
         program has read everything."
    };
    let finding = Finding {
        kind: "net.udp_overflow",
        severity: Severity::Problem,
        reach: usize::try_from(drops).unwrap_or(usize::MAX),
        what: format!(
            "{program} loses datagrams to its UDP port {}{}",
            local.port(),
            machine.inside(inode)
        ),
        evidence: vec![
            format!("{drops} datagrams dropped at the socket {local} while we looked"),
            format!("UdpRcvbufErrors: {full} while we looked"),
            format!(
                "at most {} waited to be read at a look, of {} that fit",
                ByteSize(track.queue_max.into()),
                ByteSize(buffer.into())
            ),
        ],
        cause: cause.to_owned(),
        remedies: remedies(history, buffer),
    };
    Found::new(finding, Path::of_service(inode, local.port()))
}

/// At a look more than half of its buffer waited.
fn was_full(track: &UdpTrack) -> bool {
    u64::from(track.queue_max) * 2 > u64::from(track.last.receive_buffer)
}

fn remedies(history: &NamespaceHistory, buffer: u32) -> Vec<Remedy> {
    let wanted = buffer.saturating_mul(8).max(4 << 20);
    let mut remedies = vec![
        Remedy::by_hand("see what the program does instead of reading: wirespool diagnose calls"),
        Remedy::by_hand(format!("for bursts a larger SO_RCVBUF in the program, such as {wanted}")),
    ];
    if history.number("rmem_max").is_some_and(|most| most < wanted) {
        let allow = "allow it: net.core.rmem_max caps it";
        remedies.push(Remedy::sysctl(allow, "net.core.rmem_max", &wanted.to_string()));
    }
    remedies
}

fn of_unknown(machine: &Machine<'_>, inode: u64, full: u64) -> Found {
    let finding = Finding {
        kind: "net.udp_overflow",
        severity: Severity::Warning,
        reach: usize::try_from(full).unwrap_or(usize::MAX),
        what: format!("programs lose UDP datagrams{}", machine.inside(inode)),
        evidence: vec![format!("UdpRcvbufErrors: {full} while we looked")],
        cause: "The buffers of UDP sockets were full; these sockets are gone, or the drops are \
                spread over many."
            .to_owned(),
        remedies: vec![Remedy::by_hand("look more often: --interval 100ms")],
    };
    Found::new(finding, Path { namespaces: [inode].into(), ..Path::default() })
}
