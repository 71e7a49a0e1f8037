//! Connections that wait to be accepted until there is no more space for others.

use network::sockets::TcpState;
use units::ByteSize;

use super::super::watch::{Key, Track};
use super::explain::{Found, Path};
use super::machine::Machine;
use findings::words::some;
use findings::{Finding, Remedy, Severity};

/// Listeners whose queue was full at a look, and overflows that no look has seen.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut findings = Vec::new();
    for (&inode, history) in &machine.watch.namespaces {
        let overflows = history.gained("TcpExtListenOverflows");
        let tracks = machine.watch.of_namespace(inode);
        let full: Vec<&Track> = tracks.filter(|track| is_full(track)).collect();
        findings.extend(full.iter().map(|track| of_full(machine, (inode, track), overflows)));
        if full.is_empty() && overflows > 0 {
            let path = Path { namespaces: [inode].into(), ..Path::default() };
            findings.push(Found::new(of_overflows(&history.place.name, overflows), path));
        }
    }
    findings
}

/// The kernel admits one more than the backlog (`sk_acceptq_is_full`).
fn is_full(track: &Track) -> bool {
    track.last.state == TcpState::Listen && track.queue_max > track.last.send_queue
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
        remedies: vec![
            Remedy::by_hand("find out why the program does not call accept(): busy, or stuck"),
            Remedy::by_hand("a larger backlog in listen(), for bursts"),
        ],
    };
    Found::new(finding, Path::of_service(inode, port))
}

fn of_overflows(place: &str, overflows: u64) -> Finding {
    Finding {
        kind: "tcp.accept_queue",
        severity: Severity::Warning,
        reach: usize::try_from(overflows).unwrap_or(usize::MAX),
        what: format!("in {place} connections found the queue of a listener full"),
        evidence: vec![format!("TcpExtListenOverflows: {overflows} while we looked")],
        cause: "A burst came faster than a program accepts; no look was at the right moment to \
                say which."
            .to_owned(),
        remedies: vec![Remedy::by_hand("look more often: --interval 100ms")],
    }
}
