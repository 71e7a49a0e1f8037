//! Who holds a sender up: the receiver, its own send buffer, or the program itself.
//!
//! The kernel counts for each connection the time in which it had data to send, and of that the
//! time in which the receiver's window or the send buffer was what it waited for
//! (`tcp_get_info_chrono_stats`).

use network::sockets::{TcpInfo, TcpSocket};
use units::ByteSize;

use super::super::watch::Watch;
use super::group::{Group, Member};
use crate::finding::{Finding, Remedy, Severity};
use crate::words::{percent, plural, some};

/// Less time with something to send is no finding.
const BUSY_MIN_US: u64 = 500_000;
/// Bytes that wait to be read for the whole watch.
const UNREAD_MIN: u32 = 16 << 10;

/// What a group's connections wait for.
pub(super) fn findings(watch: &Watch, group: &Group<'_>) -> Vec<Finding> {
    let by_receiver = |info: &TcpInfo| info.receiver_limited_us;
    let by_buffer = |info: &TcpInfo| info.buffer_limited_us;
    let found = [
        waiting(watch, group, by_receiver).map(|(members, share, name)| Finding {
            kind: "tcp.receiver_limited",
            severity: Severity::Warning,
            reach: members,
            what: format!("what is sent to {name} waits for its receiver"),
            evidence: vec![share],
            cause: "The window of the receiver is shut: the program there reads more slowly than \
                    data comes, or its receive buffer is too small for the round trip."
                .to_owned(),
            remedies: vec![
                Remedy::by_hand("see why the program at the other end does not read"),
                Remedy::by_hand(
                    "there: no SO_RCVBUF in the program, and a larger third value of \
                     net.ipv4.tcp_rmem",
                ),
            ],
        }),
        waiting(watch, group, by_buffer).map(|(members, share, name)| Finding {
            kind: "tcp.send_buffer",
            severity: Severity::Warning,
            reach: members,
            what: format!("what is sent to {name} waits for space in the send buffer"),
            evidence: vec![share],
            cause: "The send buffer holds less than fits on the way: the program sets SO_SNDBUF, \
                    or the kernel's limit is low."
                .to_owned(),
            remedies: vec![
                Remedy::by_hand("no SO_SNDBUF in the program, so that the kernel sizes it"),
                Remedy::sysctl("a larger limit", "net.ipv4.tcp_wmem", "4096 65536 16777216"),
            ],
        }),
        unread(watch, group),
    ];
    found.into_iter().flatten().collect()
}

/// How many connections waited for this more than half of their time, and how much.
fn waiting(
    watch: &Watch,
    group: &Group<'_>,
    of: fn(&TcpInfo) -> Option<u64>,
) -> Option<(usize, String, String)> {
    let busy = |member: &Member<'_>| member.gained(|info| info.busy_us);
    let hit: Vec<&Member<'_>> = group
        .members
        .iter()
        .filter(|member| busy(member) >= BUSY_MIN_US && member.gained(of) * 2 > busy(member))
        .collect();
    let waited: u64 = hit.iter().map(|member| member.gained(of)).sum();
    let all: u64 = hit.iter().map(|member| busy(member)).sum();
    (!hit.is_empty()).then(|| {
        let share = format!(
            "{} of the time in which there was something to send, on {} of {}: {}",
            percent(waited, all),
            hit.len(),
            plural(group.members.len(), "connection"),
            some(hit.iter().map(|member| member.peer())),
        );
        (hit.len(), share, group.name(watch))
    })
}

/// Connections whose data no program reads.
fn unread(watch: &Watch, group: &Group<'_>) -> Option<Finding> {
    if watch.looks < 2 {
        return None;
    }
    let waits = |member: &&Member<'_>| {
        let (first, last) = (&member.track.first, &member.track.last);
        let read = |socket: &TcpSocket| {
            Some(socket.info?.bytes_received?.saturating_sub(socket.receive_queue.into()))
        };
        first.receive_queue.min(last.receive_queue) >= UNREAD_MIN
            && read(first).is_some_and(|bytes| Some(bytes) == read(last))
    };
    let hit: Vec<&Member<'_>> = group.members.iter().filter(waits).collect();
    let first = hit.first()?;
    let owner = first.track.owner.as_ref();
    let program = owner.map_or_else(|| "a program".to_owned(), ToString::to_string);
    let bytes: u64 = hit.iter().map(|member| u64::from(member.track.last.receive_queue)).sum();
    Some(Finding {
        kind: "tcp.unread",
        severity: Severity::Problem,
        reach: hit.len(),
        what: format!("{program} does not read what came on {}", plural(hit.len(), "connection")),
        evidence: vec![format!(
            "{} wait to be read, and nothing was read in {:.1} s: {}",
            ByteSize(bytes),
            watch.seconds(),
            some(hit.iter().map(|member| member.peer())),
        )],
        cause: "The program is busy with something else, waits itself, or has forgotten the \
                connection."
            .to_owned(),
        remedies: vec![Remedy::by_hand("see what it does: diagnose it, or cat /proc/PID/stack")],
    })
}
