//! A program does not read what came for it.
//!
//! Mechanism: bytes wait in the queue of a socket for the whole watch, and none is taken out of it.
//! Refuted by a queue that changes, and where nobody has accepted the connection. A program that
//! passes on what it reads (a proxy) stops reading while what it sends is not taken: then the end
//! that does not take it is the cause.

use std::collections::{BTreeMap, BTreeSet};

use network::sockets::{TcpInfo, TcpSocket};
use units::ByteSize;

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member, gained};
use crate::findings::machine::{Machine, program};
use crate::findings::queue;
use crate::{Key, Track};
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// Bytes that wait to be read for the whole watch.
const UNREAD_MIN: u32 = 16 << 10;

/// One for each program that does not read.
pub(super) fn findings(machine: &Machine<'_>, group: &Group<'_>) -> Vec<Found> {
    if machine.watch.looks < 2 {
        return Vec::new();
    }
    let mut programs: BTreeMap<Option<u32>, Vec<&Member<'_>>> = BTreeMap::new();
    for member in group.members.iter().filter(|member| is_unread(machine, member)) {
        let process = member.track.owner.as_ref().map(|owner| owner.process);
        programs.entry(process).or_default().push(member);
    }
    programs.into_iter().filter_map(|(process, hit)| finding(machine, process, &hit)).collect()
}

fn is_unread(machine: &Machine<'_>, member: &Member<'_>) -> bool {
    let (first, last) = (&member.track.first, &member.track.last);
    let read = |socket: &TcpSocket| {
        Some(socket.info?.bytes_received?.saturating_sub(socket.receive_queue.into()))
    };
    // Of one that has only come, or is gone, nothing can be said.
    let is_there = member.track.looks.all > 1 && member.track.last_ns == machine.watch.ns;
    is_there
        && !queue::is_unaccepted(machine, member.key, member.track)
        && first.receive_queue.min(last.receive_queue) >= UNREAD_MIN
        && read(first).is_some_and(|bytes| Some(bytes) == read(last))
}

fn finding(machine: &Machine<'_>, process: Option<u32>, hit: &[&Member<'_>]) -> Option<Found> {
    let first = hit.first()?;
    let program = program(first.track.owner.as_deref());
    let bytes: u64 = hit.iter().map(|member| u64::from(member.track.last.receive_queue)).sum();
    // A program that talks to itself holds back nobody else.
    let other = |member: &&Member<'_>| machine.other_end(member.key, member.track);
    let own: BTreeSet<Key> = hit.iter().filter_map(other).map(|(key, _)| key).collect();
    let shut = process.map(|process| shut(machine, (first.key.namespace, process), &own));
    let shut = shut.unwrap_or_default();
    let (severity, cause, remedy) = if shut.is_empty() {
        (
            Severity::Problem,
            "The program is busy with something else, waits itself, or has forgotten the \
             connection."
                .to_owned(),
            Remedy::by_hand("see what it does: wirespool diagnose calls --pid PID"),
        )
    } else {
        (
            Severity::Warning,
            format!(
                "It waits itself: what it sends is not taken, so it reads no more, as a program \
                 that passes on what it reads has to: {}.",
                some(shut.into_iter())
            ),
            Remedy::by_hand("see why the other end of that connection does not read"),
        )
    };
    let finding = Finding {
        kind: "tcp.unread",
        severity,
        reach: hit.len(),
        what: format!("{program} does not read what came on {}", plural(hit.len(), "connection")),
        evidence: vec![format!(
            "{} wait to be read, and nothing was read in {:.1} s: {}",
            ByteSize(bytes),
            machine.watch.seconds(),
            some(hit.iter().map(|member| member.line(machine))),
        )],
        cause,
        remedies: vec![remedy],
    };
    Some(Found::new(finding, group::path(machine, hit.iter().copied())))
}

/// Connections of a process, but for these, on which it has something to send that the other end
/// has not taken for the whole watch.
fn shut(
    machine: &Machine<'_>,
    (namespace, process): (u64, u32),
    own: &BTreeSet<Key>,
) -> Vec<String> {
    let is_shut = |track: &Track| {
        let (Some(first), Some(last)) = (&track.first.info, &track.last.info) else { return false };
        let busy = gained(first, last, |info: &TcpInfo| info.busy_us);
        let receiver = gained(first, last, |info: &TcpInfo| info.receiver_limited_us);
        let acked = gained(first, last, |info: &TcpInfo| info.bytes_acked);
        let is_there = track.looks.all > 1 && track.last_ns == machine.watch.ns;
        let waits = last.unsent_bytes.is_some_and(|unsent| unsent > 0);
        is_there && waits && acked == 0 && busy > 0 && receiver.saturating_mul(2) > busy
    };
    let key = |cookie| Key { namespace, cookie };
    let tracks = machine.watch.tracks.range(key(0)..=key(u64::MAX));
    let ours = tracks.filter(|(key, track)| {
        !own.contains(key)
            && track.owner.as_ref().is_some_and(|owner| owner.process == process)
            && is_shut(track)
    });
    ours.map(|(key, track)| machine.line(*key, track)).collect()
}
