//! Connections that wait to be accepted until there is no more space for others.
//!
//! Mechanism: the queue of a listener holds one more than its backlog; what comes then is dropped,
//! and counted at the listener (`sk_drops`) and as `ListenOverflows`. A queue that was full at a
//! look belongs to a program that does not accept; one that overflowed and was never seen full, to
//! bursts that its backlog does not hold. Refuted by a listener that dropped nothing.

use network::sockets::TcpState;
use units::ByteSize;

use super::super::history::NamespaceHistory;
use super::super::watch::{Key, Track};
use super::explain::{Found, Path};
use super::machine::Machine;
use findings::words::some;
use findings::{Finding, Remedy, Severity};

/// The backlog that most programs do well with.
const BACKLOG: u32 = 1024;

/// Listeners whose queue was full at a look, and overflows that no look has seen.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut findings = Vec::new();
    for (&inode, history) in &machine.watch.namespaces {
        let overflows = history.gained("TcpExtListenOverflows");
        let listeners = || machine.watch.of_namespace(inode).filter(|track| is_listener(track));
        let (full, others): (Vec<&Track>, Vec<&Track>) = listeners().partition(|it| is_full(it));
        findings.extend(full.iter().map(|track| of_full(machine, (inode, track), overflows)));
        if overflows == 0 {
            continue;
        }
        let of_bursts: Vec<Found> = others
            .into_iter()
            .filter_map(|track| Some((track, drops(track).filter(|drops| *drops > 0)?)))
            .map(|(track, drops)| of_burst(machine, (inode, track), drops))
            .collect();
        if full.is_empty() && of_bursts.is_empty() {
            let path = Path { namespaces: [inode].into(), ..Path::default() };
            findings.push(Found::new(of_overflows(history, overflows), path));
        }
        findings.extend(of_bursts);
    }
    findings
}

fn is_listener(track: &Track) -> bool {
    track.last.state == TcpState::Listen
}

/// The kernel admits one more than the backlog (`sk_acceptq_is_full`).
fn is_full(track: &Track) -> bool {
    is_listener(track) && track.queue_max > track.last.send_queue
}

/// Connections that a listener dropped while we looked; `None` where the kernel does not report it.
pub(super) fn drops(track: &Track) -> Option<u32> {
    let before = track.first.memory?.drops?;
    Some(track.last.memory?.drops?.wrapping_sub(before))
}

/// Whether nobody has accepted a connection to a listener whose queue was full: that it is not read
/// is part of that.
pub(super) fn is_unaccepted(machine: &Machine<'_>, key: Key, track: &Track) -> bool {
    let port = track.last.local.port();
    track.last.inode == 0 && machine.listeners(key.namespace, port).any(is_full)
}

/// Connections that wait to be accepted, as they were seen last.
fn unaccepted<'w>(
    machine: &Machine<'w>,
    inode: u64,
    port: u16,
) -> impl Iterator<Item = (Key, &'w Track)> {
    let key = |cookie| Key { namespace: inode, cookie };
    let tracks = machine.watch.tracks.range(key(0)..=key(u64::MAX));
    let waits = move |(_, track): &(&Key, &Track)| {
        let last = &track.last;
        let is_there = !matches!(last.state, TcpState::Listen | TcpState::TimeWait);
        last.local.port() == port && last.inode == 0 && last.info.is_some() && is_there
    };
    tracks.filter(waits).map(|(key, track)| (*key, track))
}

fn of_full(machine: &Machine<'_>, (inode, track): (u64, &Track), overflows: u64) -> Found {
    let port = track.last.local.port();
    let owner = track.owner.as_ref();
    let program = owner.map_or_else(|| "an unknown process".to_owned(), ToString::to_string);
    let (waiting, backlog) = (track.queue_max, track.last.send_queue);
    let mut evidence = vec![
        format!("{waiting} connections waited to be accepted, its backlog is {backlog}"),
        format!("TcpExtListenOverflows: {overflows} while we looked"),
    ];
    let left: Vec<(Key, &Track)> = unaccepted(machine, inode, port).collect();
    let unread: u64 = left.iter().map(|(_, track)| u64::from(track.last.receive_queue)).sum();
    if !left.is_empty() {
        let lines = some(left.iter().map(|(key, track)| machine.line(*key, track)));
        let bytes = ByteSize(unread);
        evidence.push(format!("not accepted, with {bytes} that nobody reads: {lines}"));
    }
    let reach = usize::try_from(waiting).unwrap_or(usize::MAX).max(left.len());
    let inside = machine.inside(inode);
    let mut remedies = vec![Remedy::by_hand(
        "find out why the program does not call accept(): busy, or stuck (wirespool diagnose calls \
         --pid PID)",
    )];
    remedies.extend(self::remedies(machine, inode, track));
    let finding = Finding {
        kind: "tcp.accept_queue",
        severity: Severity::Problem,
        reach,
        what: format!("{program} does not accept the connections to its port {port}{inside}"),
        evidence,
        cause:
            "Nothing more fits into its queue: clients that connect now wait, try again after a \
                second, and fail at last; some believe that they are connected."
                .to_owned(),
        remedies,
    };
    let processes = owner.map(|owner| owner.process).into_iter().collect();
    Found::new(finding, Path { processes, ..Path::of_service(inode, port) })
}

/// Whether a connection found the queue of a listener full while we looked: a listener that drops
/// counts attempts, too, for which there is no space among the half-open ones.
pub(super) fn has_overflowed(machine: &Machine<'_>, inode: u64) -> Option<bool> {
    let history = machine.watch.namespaces.get(&inode)?;
    Some(history.gained("TcpExtListenOverflows") > 0)
}

/// More half-open connections, or none that are kept.
pub(super) fn remedies_of_half_open(machine: &Machine<'_>, inode: u64) -> Vec<Remedy> {
    let Some(history) = machine.watch.namespaces.get(&inode) else { return Vec::new() };
    let mut remedies = Vec::new();
    if !history.is_on("tcp_syncookies") {
        let what = "answer with SYN cookies when they are full: none is kept for it";
        remedies.push(Remedy::sysctl(what, "net.ipv4.tcp_syncookies", "1"));
    }
    let most = history.number("tcp_max_syn_backlog").unwrap_or(0);
    let wanted = most.saturating_mul(4).max(4096).to_string();
    remedies.push(Remedy::sysctl("keep more", "net.ipv4.tcp_max_syn_backlog", &wanted));
    remedies.into_iter().map(|remedy| remedy.entered_by(&history.place.enter)).collect()
}

/// A larger backlog for a listener, and the setting that caps it.
pub(super) fn remedies(machine: &Machine<'_>, inode: u64, track: &Track) -> Vec<Remedy> {
    let backlog = track.last.send_queue;
    let wanted = backlog.saturating_mul(4).max(BACKLOG);
    let program = track.owner.as_ref();
    let program = program.map_or_else(|| "the program".to_owned(), |owner| owner.name.clone());
    let mut remedies = vec![Remedy::by_hand(format!(
        "call listen() with a larger backlog in {program}, such as {wanted}: it is {backlog}"
    ))];
    let history = machine.watch.namespaces.get(&inode);
    let capped = history.filter(|it| it.number("somaxconn").is_some_and(|most| most < wanted));
    remedies.extend(capped.map(|history| {
        let what = "allow it: net.core.somaxconn caps it";
        let more = Remedy::sysctl(what, "net.core.somaxconn", &wanted.max(4096).to_string());
        more.entered_by(&history.place.enter)
    }));
    remedies
}

fn of_burst(machine: &Machine<'_>, (inode, track): (u64, &Track), drops: u32) -> Found {
    let port = track.last.local.port();
    let owner = track.owner.as_ref();
    let program = owner.map_or_else(|| "an unknown process".to_owned(), ToString::to_string);
    let (waiting, backlog) = (track.queue_max, track.last.send_queue);
    let finding = Finding {
        kind: "tcp.accept_queue",
        severity: Severity::Warning,
        reach: usize::try_from(drops).unwrap_or(usize::MAX),
        what: format!(
            "the queue of port {port} of {program} is too short for bursts of connections{}",
            machine.inside(inode)
        ),
        evidence: vec![
            format!("{drops} dropped at this listener while we looked"),
            format!("its backlog is {backlog}; at looks at most {waiting} waited to be accepted"),
        ],
        cause: "More connect at once than fit into its queue, and between such bursts the program \
                has accepted all. Clients whose connection was dropped try again after a second, \
                then after two."
            .to_owned(),
        remedies: remedies(machine, inode, track),
    };
    Found::new(finding, Path::of_service(inode, port))
}

fn of_overflows(history: &NamespaceHistory, overflows: u64) -> Finding {
    Finding {
        kind: "tcp.accept_queue",
        severity: Severity::Warning,
        reach: usize::try_from(overflows).unwrap_or(usize::MAX),
        what: format!("in {} connections found the queue of a listener full", history.place.name),
        evidence: vec![format!("TcpExtListenOverflows: {overflows} while we looked")],
        cause: "A burst came faster than a program accepts. Which one is not known: the listener \
                is gone, or the kernel does not report what each of them dropped."
            .to_owned(),
        remedies: vec![Remedy::by_hand("look more often: --interval 100ms")],
    }
}
