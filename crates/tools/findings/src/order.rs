//! The order of findings: a cause comes before what follows from it.
//!
//! Kinds alone link nothing: a cause and its consequence are about the same disk, process, group or
//! file system, and a rule says which of these it is.

use core::cmp::Reverse;

use crate::finding::Severity;
use crate::share::Share;
use crate::subject::{Found, Subject, Subjects};

/// What a cause and its consequence have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shared {
    Disk,
    Filesystem,
    Process,
    Group,
    Processor,
    Memory,
    Processors,
    /// Every process of the consequence is one of the cause's: where a few of many wait for
    /// another reason, that explains nothing of the others.
    AllProcesses,
    /// A process that waits for a disk; where none was seen to, any disk.
    Waits,
}

impl Shared {
    fn is_of(self, subject: &Subject) -> bool {
        match subject {
            Subject::Disk(_) => self == Self::Disk,
            Subject::Filesystem(_) => self == Self::Filesystem,
            Subject::Process(_) => {
                matches!(self, Self::Process | Self::AllProcesses | Self::Waits)
            }
            Subject::Group(_) => self == Self::Group,
            Subject::Processor(_) => self == Self::Processor,
            Subject::Memory => self == Self::Memory,
            Subject::Processors => self == Self::Processors,
            Subject::Disks => self == Self::Waits,
        }
    }

    fn is_met(self, cause: &Subjects, of: &Subjects) -> bool {
        let mut wanted = of.iter().filter(|subject| self.is_of(subject)).peekable();
        match self {
            Self::AllProcesses => {
                wanted.peek().is_some() && wanted.all(|subject| cause.contains(subject))
            }
            _ => wanted.any(|subject| cause.contains(subject)),
        }
    }
}

/// Kinds of causes, what they have in common with their consequences, and the kinds of these. A
/// kind explains nothing that explains it in turn.
type Rule = (&'static [&'static str], Shared, &'static [&'static str]);

const EXPLAINS: [Rule; 21] = [
    (
        &["io.cgroup_limit"],
        Shared::Process,
        &["io.neighbour", "io.sync_waits", "io.dirty_throttled"],
    ),
    (&["io.cgroup_limit"], Shared::Disk, &["io.queue", "io.slow_disk", "io.flushes", "io.journal"]),
    (&["host.disk_full"], Shared::Filesystem, &["io.sync_waits", "io.metadata_reads"]),
    (&["host.array"], Shared::Disk, &["io.array_reads", "io.slow_disk", "io.queue"]),
    (&["host.cgroup_memory"], Shared::Memory, &["host.swapping", "host.pressure_memory"]),
    (&["host.cgroup_memory"], Shared::Process, &["io.random_mapping"]),
    (&["host.oom"], Shared::Group, &["host.cgroup_memory"]),
    (&["host.oom"], Shared::Memory, &["host.memory", "host.swapping", "host.pressure_memory"]),
    (
        &["host.memory"],
        Shared::Memory,
        &["host.swapping", "host.pressure_memory", "host.pressure_io"],
    ),
    (&["host.swapping"], Shared::Memory, &["host.pressure_memory", "host.pressure_io"]),
    (&["host.swapping"], Shared::Disk, &["io.slow_disk", "io.queue"]),
    (&["host.cgroup_cpu", "host.pinned"], Shared::AllProcesses, &["host.pressure_cpu"]),
    (
        &["host.cgroup_cpu", "host.pinned", "host.descriptors"],
        Shared::Process,
        &["tcp.unread", "tcp.accept_queue"],
    ),
    (&["host.softirq"], Shared::Processor, &["host.softnet"]),
    (&["host.softirq", "host.stolen"], Shared::Processors, &["host.pressure_cpu"]),
    (&["io.phantom_readahead", "io.random_mapping"], Shared::Process, &["io.readahead"]),
    (&["io.discards"], Shared::Disk, &["io.sync_waits"]),
    (&["io.sync_waits"], Shared::Disk, &["io.flushes", "io.journal"]),
    (&["io.neighbour"], Shared::Disk, &["io.small_requests"]),
    (
        &[
            "io.phantom_readahead",
            "io.random_mapping",
            "io.readahead",
            "io.partial_pages",
            "io.array_reads",
            "io.discards",
            "io.neighbour",
            "io.dirty_throttled",
        ],
        Shared::Disk,
        &["io.queue", "io.slow_disk"],
    ),
    (&["io.slow_disk"], Shared::Disk, &["io.queue"]),
];

/// What makes programs wait for disks explains that they do.
const MAKES_WAIT: Rule = (
    &[
        "host.cgroup_memory",
        "io.array_reads",
        "io.cgroup_limit",
        "io.dirty_throttled",
        "io.discards",
        "io.neighbour",
        "io.partial_pages",
        "io.phantom_readahead",
        "io.random_mapping",
        "io.readahead",
        "io.slow_disk",
        "io.sync_waits",
    ],
    Shared::Waits,
    &["host.pressure_io"],
);

/// Which findings have the detail of a share.
struct Detail {
    /// What the share is about.
    of: &'static str,
    /// What both have in common.
    shared: &'static [Shared],
    /// Kinds of findings, the best first.
    kinds: &'static [&'static str],
    /// Those of the machine as a whole, which have it for every share.
    general: &'static [&'static str],
}

const DETAIL: [Detail; 4] = [
    Detail {
        of: "processors",
        shared: &[Shared::Process],
        kinds: &["host.pinned", "host.cgroup_cpu"],
        general: &["host.pressure_cpu", "host.softirq", "host.stolen"],
    },
    Detail {
        of: "processor waits",
        shared: &[Shared::Process],
        kinds: &["host.cgroup_cpu", "host.pinned"],
        general: &["host.pressure_cpu"],
    },
    Detail {
        of: "disks",
        shared: &[Shared::Disk],
        kinds: &[
            "io.neighbour",
            "io.phantom_readahead",
            "io.random_mapping",
            "io.readahead",
            "io.discards",
            "io.flushes",
            "io.slow_disk",
            "io.queue",
            "io.small_requests",
        ],
        general: &["host.pressure_io"],
    },
    Detail {
        of: "disk waits",
        shared: &[Shared::Disk, Shared::Process],
        kinds: &[
            "io.cgroup_limit",
            "io.neighbour",
            "io.sync_waits",
            "io.dirty_throttled",
            "io.slow_disk",
            "io.queue",
        ],
        general: &["host.pressure_io"],
    },
];

/// The place of the finding that has the detail of a share.
pub(crate) fn detail(findings: &[Found], of: &Share) -> Option<usize> {
    let Detail { shared, kinds, general, .. } = DETAIL.iter().find(|it| it.of == of.of)?;
    let has_it = |found: &Found, kind: &str| {
        found.kind == kind && shared.iter().all(|it| it.is_met(&found.about, &of.about))
    };
    let own = kinds.iter().find_map(|kind| findings.iter().position(|found| has_it(found, kind)));
    let place_of = |kind: &&str| findings.iter().position(|found| found.kind == *kind);
    own.or_else(|| general.iter().find_map(place_of))
}

/// Whether one finding explains another.
fn explains(cause: &Found, of: &Found) -> bool {
    let is_rule = |(causes, shared, kinds): &Rule| {
        causes.contains(&cause.kind)
            && kinds.contains(&of.kind)
            && shared.is_met(&cause.about, &of.about)
    };
    EXPLAINS.iter().chain([&MAKES_WAIT]).any(is_rule)
}

/// The finding that explains another one: the first in order that does.
pub(crate) fn explanation(findings: &[Found], of: &Found) -> Option<usize> {
    findings.iter().position(|other| explains(other, of))
}

/// The worst of a finding and of all that follows from it. Chains end: no kind explains itself
/// through others.
fn weight(findings: &[Found], of: &Found) -> Severity {
    let below = findings.iter().filter(|other| explains(of, other));
    below.map(|other| weight(findings, other)).fold(of.severity, Severity::max)
}

/// Steps of the longest chain of causes above a finding.
fn depth(findings: &[Found], of: &Found) -> usize {
    let above = findings.iter().filter(|other| explains(other, of));
    above.map(|other| depth(findings, other) + 1).max().unwrap_or(0)
}

/// Puts findings into order: the worst first, and what explains others before them, with the
/// weight of the worst that it explains.
pub(crate) fn sort(findings: &mut Vec<Found>) {
    let rank = |found: &Found| {
        let place = (weight(findings, found), Reverse(depth(findings, found)), found.reach);
        (Reverse(place), found.what.clone())
    };
    let ranks: Vec<_> = findings.iter().map(rank).collect();
    let mut ranked: Vec<_> = ranks.into_iter().zip(core::mem::take(findings)).collect();
    ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
    findings.extend(ranked.into_iter().map(|(_, found)| found));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;

    fn finding(kind: &'static str, severity: Severity, reach: usize, about: &[Subject]) -> Found {
        let (what, evidence) = (kind.to_owned(), Vec::new());
        let (cause, remedies) = (String::new(), Vec::new());
        let finding = Finding { kind, severity, reach, what, evidence, cause, remedies };
        finding.about(about.iter().cloned())
    }

    fn disk(name: &str) -> Subject {
        Subject::Disk(name.to_owned())
    }

    fn links(findings: &[Found]) -> Vec<(&str, Option<&str>)> {
        let cause = |of: &Found| Some(findings.get(explanation(findings, of)?)?.kind);
        findings.iter().map(|of| (of.kind, cause(of))).collect()
    }

    #[test]
    fn no_kind_explains_itself_through_others() {
        let rules = || EXPLAINS.iter().chain([&MAKES_WAIT]);
        for kind in rules().flat_map(|(causes, ..)| causes.iter()) {
            let mut below = vec![*kind];
            let mut next = 0;
            while let Some(cause) = below.get(next).copied() {
                next += 1;
                for (_, _, kinds) in rules().filter(|(causes, ..)| causes.contains(&cause)) {
                    assert!(!kinds.contains(kind), "{kind} through {cause}");
                    let new: Vec<_> =
                        kinds.iter().copied().filter(|it| !below.contains(it)).collect();
                    below.extend(new);
                }
            }
        }
    }

    #[test]
    fn a_cause_comes_before_what_follows_from_it_and_weighs_as_much() {
        let (sda, waits) = (disk("sda"), Subject::Process(7));
        let mut findings = vec![
            finding("host.pressure_io", Severity::Problem, 9000, core::slice::from_ref(&waits)),
            finding("io.no_barriers", Severity::Problem, 1, &[]),
            finding("io.queue", Severity::Warning, 500, core::slice::from_ref(&sda)),
            finding("io.neighbour", Severity::Warning, 3, &[sda, waits]),
            finding("host.scheduler", Severity::Note, 1, &[]),
        ];
        sort(&mut findings);
        let expected = [
            ("io.neighbour", None),
            ("io.no_barriers", None),
            ("host.pressure_io", Some("io.neighbour")),
            ("io.queue", Some("io.neighbour")),
            ("host.scheduler", None),
        ];
        assert_eq!(links(&findings), expected);
    }

    #[test]
    fn a_cause_explains_nothing_of_another_disk_process_or_file_system() {
        let apart = [
            ("io.discards", disk("loop0"), "io.sync_waits", disk("loop2")),
            ("io.readahead", disk("vda"), "io.slow_disk", disk("loop2")),
            (
                "host.disk_full",
                Subject::Filesystem("/run".to_owned()),
                "io.sync_waits",
                Subject::Filesystem("/".to_owned()),
            ),
            ("host.descriptors", Subject::Process(1), "tcp.accept_queue", Subject::Process(2)),
            (
                "host.oom",
                Subject::Group("/a".into()),
                "host.cgroup_memory",
                Subject::Group("/b".into()),
            ),
            ("host.softirq", Subject::Processor(0), "host.softnet", Subject::Processor(1)),
            ("io.sync_waits", Subject::Process(1), "host.pressure_io", Subject::Process(2)),
        ];
        for (cause, one, consequence, other) in apart {
            let cause = finding(cause, Severity::Problem, 1, core::slice::from_ref(&one));
            let of = |about: &Subject| {
                finding(consequence, Severity::Warning, 1, core::slice::from_ref(about))
            };
            assert!(!explains(&cause, &of(&other)), "{cause:?} {other:?}");
            assert!(explains(&cause, &of(&one)), "{cause:?}");
            assert!(!explains(&cause, &finding(consequence, Severity::Warning, 1, &[])));
        }
    }

    #[test]
    fn one_group_of_many_that_wait_does_not_explain_the_pressure() {
        let processes = |numbers: &[u32]| -> Vec<Subject> {
            numbers.iter().map(|number| Subject::Process(*number)).collect()
        };
        let quota = finding("host.cgroup_cpu", Severity::Problem, 1, &processes(&[1, 2, 3]));
        let pressure =
            |of: &[u32]| finding("host.pressure_cpu", Severity::Warning, 1, &processes(of));
        assert!(explains(&quota, &pressure(&[1, 2])));
        assert!(!explains(&quota, &pressure(&[1, 9])));
        assert!(!explains(&quota, &pressure(&[])));
    }

    #[test]
    fn a_share_leads_to_the_finding_of_its_own_disk_and_process() {
        let loop2 = || vec![disk("loop2"), Subject::Process(7)];
        let findings = [finding("io.neighbour", Severity::Warning, 1, &loop2())];
        let share = |about: Vec<Subject>| Share {
            of: "disk waits",
            what: String::new(),
            finding: None,
            about: about.into_iter().collect(),
        };
        assert_eq!(detail(&findings, &share(loop2())), Some(0));
        assert_eq!(detail(&findings, &share(vec![disk("vda"), Subject::Process(7)])), None);
        assert_eq!(detail(&findings, &share(vec![disk("loop2"), Subject::Process(8)])), None);
        let machine = [finding("host.pressure_io", Severity::Warning, 1, &[])];
        assert_eq!(detail(&machine, &share(loop2())), Some(0));
    }
}
