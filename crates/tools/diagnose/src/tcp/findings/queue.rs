//! Connections that wait to be accepted until there is no more space for others.

use network::sockets::TcpState;

use super::super::watch::{Track, Watch};
use crate::finding::{Finding, Remedy, Severity};

/// Listeners whose queue was full at a look, and overflows that no look has seen.
pub(super) fn findings(watch: &Watch) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (&inode, history) in &watch.namespaces {
        let overflows = history.gained("TcpExtListenOverflows");
        let full: Vec<&Track> = watch.of_namespace(inode).filter(|track| is_full(track)).collect();
        findings.extend(full.iter().map(|track| of_full(track, overflows)));
        if full.is_empty() && overflows > 0 {
            findings.push(of_overflows(&history.place.name, overflows));
        }
    }
    findings
}

/// The kernel admits one more than the backlog (`sk_acceptq_is_full`).
fn is_full(track: &Track) -> bool {
    track.last.state == TcpState::Listen && track.queue_max > track.last.send_queue
}

fn of_full(track: &Track, overflows: u64) -> Finding {
    let port = track.last.local.port();
    let owner = track.owner.as_ref();
    let program = owner.map_or_else(|| "an unknown process".to_owned(), ToString::to_string);
    let (waiting, backlog) = (track.queue_max, track.last.send_queue);
    Finding {
        kind: "tcp.accept_queue",
        severity: Severity::Problem,
        reach: usize::try_from(waiting).unwrap_or(usize::MAX),
        what: format!("{program} does not accept the connections to its port {port}"),
        evidence: vec![
            format!("{waiting} connections waited to be accepted, its backlog is {backlog}"),
            format!("TcpExtListenOverflows: {overflows} while we looked"),
        ],
        cause:
            "Nothing more fits into its queue: clients that connect now wait, try again after a \
                second, and fail at last; some believe that they are connected."
                .to_owned(),
        remedies: vec![
            Remedy::by_hand("find out why the program does not call accept(): busy, or stuck"),
            Remedy::by_hand("a larger backlog in listen(), for bursts"),
        ],
    }
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
