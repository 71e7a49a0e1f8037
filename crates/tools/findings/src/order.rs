//! The order of findings: a cause comes before what follows from it.

use crate::finding::{Finding, Severity};

/// Kinds of findings, and the kinds that each explains where both are found. A kind explains
/// nothing that explains it in turn.
const EXPLAINS: [(&str, &[&str]); 22] = [
    (
        "io.cgroup_limit",
        &[
            "io.neighbour",
            "io.sync_waits",
            "io.dirty_throttled",
            "io.queue",
            "io.slow_disk",
            "io.flushes",
            "io.journal",
            "host.pressure_io",
        ],
    ),
    ("host.disk_full", &["io.sync_waits", "io.metadata_reads", "host.pressure_io"]),
    ("host.array", &["io.array_reads", "io.slow_disk", "io.queue", "host.pressure_io"]),
    (
        "host.cgroup_memory",
        &["host.swapping", "host.pressure_memory", "host.pressure_io", "io.random_mapping"],
    ),
    ("host.oom", &["host.cgroup_memory", "host.memory", "host.swapping", "host.pressure_memory"]),
    ("host.memory", &["host.swapping", "host.pressure_memory", "host.pressure_io"]),
    ("host.swapping", &["host.pressure_memory", "host.pressure_io", "io.slow_disk", "io.queue"]),
    ("host.cgroup_cpu", &["host.pressure_cpu", "tcp.unread", "tcp.accept_queue"]),
    ("host.pinned", &["host.pressure_cpu", "tcp.unread", "tcp.accept_queue"]),
    ("host.softirq", &["host.softnet", "host.pressure_cpu"]),
    ("host.stolen", &["host.pressure_cpu"]),
    ("host.descriptors", &["tcp.accept_queue", "tcp.unread"]),
    ("io.phantom_readahead", &["io.queue", "io.slow_disk", "host.pressure_io", "io.readahead"]),
    ("io.random_mapping", &["io.queue", "io.slow_disk", "host.pressure_io", "io.readahead"]),
    ("io.readahead", &["io.queue", "io.slow_disk", "host.pressure_io"]),
    ("io.partial_pages", &["io.queue", "io.slow_disk", "host.pressure_io"]),
    ("io.array_reads", &["io.queue", "io.slow_disk", "host.pressure_io"]),
    ("io.discards", &["io.queue", "io.slow_disk", "io.sync_waits", "host.pressure_io"]),
    ("io.sync_waits", &["io.flushes", "io.journal", "host.pressure_io"]),
    ("io.neighbour", &["io.queue", "io.slow_disk", "io.small_requests", "host.pressure_io"]),
    ("io.dirty_throttled", &["io.queue", "io.slow_disk", "host.pressure_io"]),
    ("io.slow_disk", &["io.queue", "host.pressure_io"]),
];

/// What a share is about, and the kinds of findings that have the detail, the best first.
const DETAIL: [(&str, &[&str]); 4] = [
    (
        "processors",
        &["host.pressure_cpu", "host.pinned", "host.cgroup_cpu", "host.softirq", "host.stolen"],
    ),
    ("processor waits", &["host.cgroup_cpu", "host.pinned", "host.pressure_cpu"]),
    (
        "disks",
        &[
            "io.neighbour",
            "io.phantom_readahead",
            "io.random_mapping",
            "io.readahead",
            "io.discards",
            "io.flushes",
            "io.slow_disk",
            "io.queue",
            "io.small_requests",
            "host.pressure_io",
        ],
    ),
    (
        "disk waits",
        &[
            "io.cgroup_limit",
            "io.neighbour",
            "io.sync_waits",
            "io.dirty_throttled",
            "io.slow_disk",
            "io.queue",
            "host.pressure_io",
        ],
    ),
];

/// The kind of finding that has the detail of a share.
pub(crate) fn detail(findings: &[Finding], of: &str) -> Option<&'static str> {
    let (_, kinds) = DETAIL.iter().find(|(share, _)| *share == of)?;
    kinds.iter().copied().find(|kind| findings.iter().any(|finding| finding.kind == *kind))
}

/// Whether findings of one kind explain those of another.
fn explains(cause: &str, consequence: &str) -> bool {
    EXPLAINS.iter().any(|(kind, kinds)| *kind == cause && kinds.contains(&consequence))
}

/// The finding that explains another one: the first in order that is of a kind that does.
pub(crate) fn explanation(findings: &[Finding], of: &Finding) -> Option<usize> {
    findings.iter().position(|other| explains(other.kind, of.kind))
}

/// Puts findings into order: the worst first, and what explains others before them, with the
/// weight of the worst that it explains.
pub(crate) fn sort(findings: &mut [Finding]) {
    let kinds: Vec<(&'static str, Severity)> =
        findings.iter().map(|finding| (finding.kind, finding.severity)).collect();
    // Through a chain of causes: there are not more links than kinds.
    let weight = |finding: &Finding| {
        let mut reached = vec![finding.kind];
        let mut worst = finding.severity;
        let mut next = 0;
        while let Some(cause) = reached.get(next).copied() {
            next += 1;
            for (kind, severity) in &kinds {
                if explains(cause, kind) && !reached.contains(kind) {
                    reached.push(*kind);
                    worst = worst.max(*severity);
                }
            }
        }
        worst
    };
    let depth = |finding: &Finding| {
        let mut depth = 0_usize;
        let mut at = vec![finding.kind];
        while depth < EXPLAINS.len() {
            let above: Vec<&'static str> = kinds
                .iter()
                .map(|(kind, _)| *kind)
                .filter(|kind| at.iter().any(|below| explains(kind, below)))
                .collect();
            if above.is_empty() {
                break;
            }
            (depth, at) = (depth + 1, above);
        }
        depth
    };
    findings.sort_by_cached_key(|finding| {
        let rank = (weight(finding), core::cmp::Reverse(depth(finding)), finding.reach);
        (core::cmp::Reverse(rank), finding.what.clone())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: &'static str, severity: Severity, reach: usize) -> Finding {
        Finding {
            kind,
            severity,
            reach,
            what: kind.to_owned(),
            evidence: Vec::new(),
            cause: String::new(),
            remedies: Vec::new(),
        }
    }

    #[test]
    fn no_kind_explains_itself_through_others() {
        for (kind, _) in EXPLAINS {
            let mut below = vec![kind];
            let mut next = 0;
            while let Some(cause) = below.get(next).copied() {
                next += 1;
                for (_, kinds) in EXPLAINS.iter().filter(|(of, _)| *of == cause) {
                    assert!(!kinds.contains(&kind), "{kind} through {cause}");
                    let new: Vec<_> =
                        kinds.iter().copied().filter(|it| !below.contains(it)).collect();
                    below.extend(new);
                }
            }
        }
    }

    #[test]
    fn a_cause_comes_before_what_follows_from_it_and_weighs_as_much() {
        let mut findings = vec![
            finding("host.pressure_io", Severity::Problem, 9000),
            finding("io.no_barriers", Severity::Problem, 1),
            finding("io.queue", Severity::Warning, 500),
            finding("io.neighbour", Severity::Warning, 3),
            finding("host.scheduler", Severity::Note, 1),
        ];
        sort(&mut findings);
        let kinds: Vec<&str> = findings.iter().map(|it| it.kind).collect();
        let expected =
            ["io.neighbour", "io.no_barriers", "host.pressure_io", "io.queue", "host.scheduler"];
        assert_eq!(kinds, expected);
        let explained: Vec<_> = findings.iter().map(|it| explanation(&findings, it)).collect();
        assert_eq!(explained, [None, None, Some(0), Some(0), None]);
    }
}
