//! Who holds a sender up: the receiver, or its own send buffer.
//!
//! The kernel counts for each connection the time in which it had data to send, and of that the
//! time in which the receiver's window or the send buffer was what it waited for
//! (`tcp_get_info_chrono_stats`). Why a window is small is seen at the other end, where that is on
//! this machine: a queue that is never empty is a slow program, an empty one a small buffer; and
//! without window scale no window is larger than 64 KiB, whatever the program does.

use network::sockets::TcpInfo;
use units::ByteSize;

use crate::Track;
use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use crate::history::NamespaceHistory;
use findings::words::{percent, plural, some};
use findings::{Finding, Remedy, Severity};

/// Less time with something to send is no finding.
const BUSY_MIN_US: u64 = 500_000;
/// A window without scale that is so large is near the largest that there is.
const UNSCALED_MIN: u32 = 32 << 10;
const SCALING: &str = "tcp_window_scaling";
/// What a send buffer may grow to with the setting that is advised, at least.
const BUFFER_WANTED: u32 = 16 << 20;

/// What a group's connections wait for.
pub(super) fn findings(machine: &Machine<'_>, group: &Group<'_>) -> Vec<Found> {
    [by_receiver(machine, group), by_buffer(machine, group)].into_iter().flatten().collect()
}

fn by_receiver(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let (hit, share) = waiting(machine, group, |info| info.receiver_limited_us, fills_window)?;
    let (cause, remedies) = why_small(machine, &hit);
    let finding = Finding {
        kind: "tcp.receiver_limited",
        severity: Severity::Warning,
        reach: hit.len(),
        what: format!("what is sent to {} waits for its receiver", group.name(machine.watch)),
        evidence: [share].into_iter().chain(windows(&hit)).chain(reading(machine, &hit)).collect(),
        cause,
        remedies,
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn by_buffer(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let (hit, share) = waiting(machine, group, |info| info.buffer_limited_us, |_| false)?;
    let history = group.namespace(machine.watch)?;
    let buffer = hit.iter().filter_map(|member| member.track.last.memory).map(|it| it.send_buffer);
    let buffer = buffer.min();
    let most = third(history, "tcp_wmem");
    let mut evidence = vec![share];
    evidence.extend(buffer.zip(most).map(|(buffer, most)| {
        format!(
            "the send buffer is {}, the kernel would let it grow to {} (net.ipv4.tcp_wmem)",
            ByteSize(buffer.into()),
            ByteSize(most.into())
        )
    }));
    let (cause, remedies) = why_full(history, buffer, most);
    let finding = Finding {
        kind: "tcp.send_buffer",
        severity: Severity::Warning,
        reach: hit.len(),
        what: format!(
            "what is sent to {} waits for space in the send buffer",
            group.name(machine.watch)
        ),
        evidence,
        cause,
        remedies,
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

/// The largest of the three sizes of a setting.
fn third(history: &NamespaceHistory, setting: &str) -> Option<u32> {
    history.settings.get(setting)?.split(' ').nth(2)?.parse().ok()
}

/// The kernel lets a buffer grow to its limit, unless the program has set its size.
fn why_full(
    history: &NamespaceHistory,
    buffer: Option<u32>,
    most: Option<u32>,
) -> (String, Vec<Remedy>) {
    let by_program = Remedy::by_hand("no SO_SNDBUF in the program, so that the kernel sizes it");
    let is_far_below = buffer.zip(most).map(|(buffer, most)| buffer < most / 2);
    if is_far_below == Some(true) {
        let cause = "The send buffer holds less than fits on the way. The kernel would let it \
                     grow: the program has set its size (SO_SNDBUF).";
        return (cause.to_owned(), vec![by_program]);
    }
    let sizes: Option<Vec<&str>> =
        history.settings.get("tcp_wmem").map(|sizes| sizes.split(' ').collect());
    let larger = match (sizes.as_deref(), most) {
        (Some([least, first, _]), Some(most)) => {
            let wanted = most.saturating_mul(4).max(BUFFER_WANTED).min(i32::MAX.unsigned_abs());
            let value = format!("{least} {first} {wanted}");
            let what = "a larger limit";
            let larger = Remedy::sysctl(what, "net.ipv4.tcp_wmem", &value);
            larger.entered_by(&history.place.enter)
        }
        _ => Remedy::by_hand("a larger third value of net.ipv4.tcp_wmem"),
    };
    if is_far_below == Some(false) {
        let cause = "The send buffer holds less than fits on the way, and has grown to the limit \
                     of the kernel.";
        return (cause.to_owned(), vec![larger]);
    }
    let cause = "The send buffer holds less than fits on the way: the program sets SO_SNDBUF, or \
                 the kernel's limit is low.";
    (cause.to_owned(), vec![by_program, larger])
}

/// Whether nine tenths of what the receiver allows are under way at most looks, and more waits:
/// pacing has the kernel count a part of that wait for itself.
fn fills_window(member: &Member<'_>) -> bool {
    let looks = &member.track.looks;
    looks.filled.saturating_mul(2) >= looks.all
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

/// How the program at the other end reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reader {
    /// Something waits for it nearly always.
    Slow,
    /// Nothing waits for it nearly always.
    Fast,
}

fn reader(track: &Track) -> Option<Reader> {
    let looks = &track.looks;
    if looks.all < 2 {
        None
    } else if looks.unread.saturating_mul(5) >= looks.all.saturating_mul(4) {
        Some(Reader::Slow)
    } else if looks.unread.saturating_mul(5) <= looks.all {
        Some(Reader::Fast)
    } else {
        None
    }
}

/// The other ends of connections, where they are on this machine.
fn others<'w>(machine: &Machine<'w>, hit: &[&Member<'_>]) -> Vec<&'w Track> {
    let other = |member: &&Member<'_>| machine.other_end(member.key, member.track);
    hit.iter().filter_map(other).map(|(_, track)| track).collect()
}

/// At how many looks something waited to be read at the other ends.
fn reading(machine: &Machine<'_>, hit: &[&Member<'_>]) -> Option<String> {
    let others = others(machine, hit);
    let all: u32 = others.iter().map(|track| track.looks.all).sum();
    let unread: u32 = others.iter().map(|track| track.looks.unread).sum();
    (all > 0).then(|| {
        let looks = plural(usize::try_from(all).unwrap_or(usize::MAX), "look");
        format!("at the other end something waited to be read at {unread} of {looks}")
    })
}

/// Why the receivers allow so little.
fn why_small(machine: &Machine<'_>, hit: &[&Member<'_>]) -> (String, Vec<Remedy>) {
    let others = others(machine, hit);
    let all_are = |wanted| !others.is_empty() && others.iter().all(|it| reader(it) == Some(wanted));
    if all_are(Reader::Slow) {
        let owner = others.first().and_then(|track| track.owner.as_ref());
        let program = owner.map_or_else(|| "the program there".to_owned(), ToString::to_string);
        let cause = format!(
            "The window of the receiver is shut: {program} reads more slowly than data comes."
        );
        let remedy = "see what it waits for: wirespool diagnose calls --pid PID";
        return (cause, vec![Remedy::by_hand(remedy)]);
    }
    let is_unscaled = |member: &&Member<'_>| {
        !member.last.options.window_scale
            && member.last.send_window.is_some_and(|window| window >= UNSCALED_MIN)
    };
    if hit.iter().all(is_unscaled) {
        return unscaled(machine, hit);
    }
    let larger = Remedy::by_hand(
        "there: no SO_RCVBUF in the program, no `window` in the route back, and a larger third \
         value of net.ipv4.tcp_rmem",
    );
    if all_are(Reader::Fast) {
        let cause = "The program there reads at once what comes. Its window is too small for the \
                     round trip: its receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem), or a limit of \
                     its route.";
        return (cause.to_owned(), vec![larger]);
    }
    let cause = "The window of the receiver is shut: the program there reads more slowly than \
                 data comes, or its receive buffer is too small for the round trip.";
    let see = Remedy::by_hand("see why the program at the other end does not read");
    (cause.to_owned(), vec![see, larger])
}

/// Without window scale; which side has it switched off, where that is on this machine.
fn unscaled(machine: &Machine<'_>, hit: &[&Member<'_>]) -> (String, Vec<Remedy>) {
    let ends = hit.iter().flat_map(|member| {
        let here = member.key.namespace;
        let there = machine.namespace_of(here, member.track.last.remote.ip());
        [Some(here), there].into_iter().flatten()
    });
    let off = ends
        .filter_map(|inode| machine.watch.namespaces.get(&inode))
        .find(|history| !history.is_on(SCALING));
    let anew = Remedy::by_hand("open these connections anew: the handshake decides");
    let limit = "Both sides agreed on no window scale, so that no more than 64 KiB can be under \
                 way, however fast the program reads";
    match off {
        Some(history) => {
            let what = format!("switch it on in {}", history.place.name);
            let on = Remedy::sysctl(what, "net.ipv4.tcp_window_scaling", "1");
            let cause =
                format!("{limit}: net.ipv4.tcp_window_scaling is 0 in {}.", history.place.name);
            (cause, vec![on.entered_by(&history.place.enter), anew])
        }
        None => (
            format!(
                "{limit}. One side did not offer it (net.ipv4.tcp_window_scaling), something on \
                 the way took it out of the handshake, or a SYN cookie lost it."
            ),
            vec![
                Remedy::by_hand(
                    "see in which SYN it is missing, at both sides: tcpdump -v 'tcp[tcpflags] & \
                     tcp-syn != 0'",
                ),
                anew,
            ],
        ),
    }
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
