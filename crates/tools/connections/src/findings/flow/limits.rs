//! Who holds a sender up: the receiver, its own send buffer, or the program itself.
//!
//! The kernel counts for each connection the time in which it had data to send, and of that the
//! time in which the receiver's window or the send buffer was what it waited for
//! (`tcp_get_info_chrono_stats`).

use network::sockets::{TcpInfo, TcpSocket};
use units::ByteSize;

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use crate::findings::queue;
use findings::words::{percent, plural, some};
use findings::{Finding, Remedy, Severity};

/// Less time with something to send is no finding.
const BUSY_MIN_US: u64 = 500_000;
/// Bytes that wait to be read for the whole watch.
const UNREAD_MIN: u32 = 16 << 10;

/// What a group's connections wait for.
pub(super) fn findings(machine: &Machine<'_>, group: &Group<'_>) -> Vec<Found> {
    let by_receiver = |info: &TcpInfo| info.receiver_limited_us;
    let by_buffer = |info: &TcpInfo| info.buffer_limited_us;
    let found = [
        waiting(machine, group, by_receiver, fills_window).map(|(hit, share)| {
            let finding = Finding {
                kind: "tcp.receiver_limited",
                severity: Severity::Warning,
                reach: hit.len(),
                what: format!(
                    "what is sent to {} waits for its receiver",
                    group.name(machine.watch)
                ),
                evidence: [share].into_iter().chain(windows(&hit)).collect(),
                cause:
                    "The window of the receiver is shut: the program there reads more slowly than \
                    data comes, or its receive buffer is too small for the round trip."
                        .to_owned(),
                remedies: vec![
                    Remedy::by_hand("see why the program at the other end does not read"),
                    Remedy::by_hand(
                        "there: no SO_RCVBUF in the program, and a larger third value of \
                     net.ipv4.tcp_rmem",
                    ),
                ],
            };
            Found::new(finding, group::path(machine, hit.into_iter()))
        }),
        waiting(machine, group, by_buffer, |_| false).map(|(hit, share)| {
            let finding = Finding {
                kind: "tcp.send_buffer",
                severity: Severity::Warning,
                reach: hit.len(),
                what: format!(
                    "what is sent to {} waits for space in the send buffer",
                    group.name(machine.watch)
                ),
                evidence: vec![share],
                cause:
                    "The send buffer holds less than fits on the way: the program sets SO_SNDBUF, \
                    or the kernel's limit is low."
                        .to_owned(),
                remedies: vec![
                    Remedy::by_hand("no SO_SNDBUF in the program, so that the kernel sizes it"),
                    Remedy::sysctl("a larger limit", "net.ipv4.tcp_wmem", "4096 65536 16777216"),
                ],
            };
            Found::new(finding, group::path(machine, hit.into_iter()))
        }),
        unread(machine, group),
    ];
    found.into_iter().flatten().collect()
}

/// Whether nine tenths of what the receiver allows are under way, and more waits: pacing has the
/// kernel count a part of that wait for itself.
fn fills_window(member: &Member<'_>) -> bool {
    let info = member.last;
    let under_way = u64::from(info.unacked) * u64::from(info.send_mss);
    let window = info.send_window.map_or(u64::MAX, u64::from);
    let is_more = info.unsent_bytes.is_some_and(|unsent| unsent >= info.send_mss);
    is_more && under_way.saturating_mul(10) >= window.saturating_mul(9)
}

/// The windows that senders wait for, where the kernel says them.
fn windows(hit: &[&Member<'_>]) -> Option<String> {
    let windows = hit.iter().filter_map(|member| member.last.send_window);
    let (least, most) = (windows.clone().min()?, windows.max()?);
    let scaled = hit.iter().filter(|member| member.last.window_scales.0 > 0).count();
    let scale = if scaled == 0 { "; without window scale none is larger than 64 KiB" } else { "" };
    let bytes = |window: u32| ByteSize(u64::from(window)).to_string();
    let words =
        if least == most { bytes(most) } else { format!("{} to {}", bytes(least), bytes(most)) };
    Some(format!("the receiver allows {words} under way{scale}"))
}

/// Connections that waited for this more than two fifths of their time, and how much: a congestion
/// control that paces (BBR) takes the rest for its own. A fifth is enough where it shows otherwise.
fn waiting<'g, 'w>(
    machine: &Machine<'_>,
    group: &'g Group<'w>,
    of: fn(&TcpInfo) -> Option<u64>,
    shows: fn(&Member<'_>) -> bool,
) -> Option<(Vec<&'g Member<'w>>, String)> {
    let busy = |member: &Member<'_>| member.gained(|info| info.busy_us);
    let waits = |member: &&Member<'_>| {
        let least = if shows(member) { 1 } else { 2 };
        busy(member) >= BUSY_MIN_US
            && member.gained(of).saturating_mul(5) > busy(member).saturating_mul(least)
    };
    let hit: Vec<&Member<'_>> = group.members.iter().filter(waits).collect();
    let waited: u64 = hit.iter().map(|member| member.gained(of)).sum();
    let all: u64 = hit.iter().map(|member| busy(member)).sum();
    let share = format!(
        "{} of the time in which there was something to send, on {} of {}: {}",
        percent(waited, all),
        hit.len(),
        plural(group.members.len(), "connection"),
        some(hit.iter().map(|member| member.line(machine))),
    );
    (!hit.is_empty()).then_some((hit, share))
}

/// Connections whose data no program reads.
fn unread(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let watch = machine.watch;
    if watch.looks < 2 {
        return None;
    }
    let waits = |member: &&Member<'_>| {
        let (first, last) = (&member.track.first, &member.track.last);
        let read = |socket: &TcpSocket| {
            Some(socket.info?.bytes_received?.saturating_sub(socket.receive_queue.into()))
        };
        // Of one that has only come, or is gone, nothing can be said.
        let is_there = member.track.looks.all > 1 && member.track.last_ns == watch.ns;
        is_there
            && !queue::is_unaccepted(machine, member.key, member.track)
            && first.receive_queue.min(last.receive_queue) >= UNREAD_MIN
            && read(first).is_some_and(|bytes| Some(bytes) == read(last))
    };
    let hit: Vec<&Member<'_>> = group.members.iter().filter(waits).collect();
    let first = hit.first()?;
    let owner = first.track.owner.as_ref();
    let program = owner.map_or_else(|| "a program".to_owned(), ToString::to_string);
    let bytes: u64 = hit.iter().map(|member| u64::from(member.track.last.receive_queue)).sum();
    let finding = Finding {
        kind: "tcp.unread",
        severity: Severity::Problem,
        reach: hit.len(),
        what: format!("{program} does not read what came on {}", plural(hit.len(), "connection")),
        evidence: vec![format!(
            "{} wait to be read, and nothing was read in {:.1} s: {}",
            ByteSize(bytes),
            watch.seconds(),
            some(hit.iter().map(|member| member.line(machine))),
        )],
        cause: "The program is busy with something else, waits itself, or has forgotten the \
                connection."
            .to_owned(),
        remedies: vec![Remedy::by_hand("see what it does: diagnose it, or cat /proc/PID/stack")],
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}
