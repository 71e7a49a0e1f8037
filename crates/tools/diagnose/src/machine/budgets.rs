//! Groups of processes that met the limit of their processor time, memory or threads.

use observe::budgets::{Budget, MemoryBudget, ProcessorBudget, TaskBudget};
use units::ByteSize;

use super::seen::{BudgetUse, MachineWatch};
use crate::quota::{self, UsedUp};
use findings::words::{percent, process, processes, some, time};
use findings::{Finding, Found, Remedy, Severity, Subject};

/// Hundredths of the watch: from there on it is a problem.
const LONG: u64 = 30;
/// Pages that a group lost and needed again, a second: 1 MiB.
const REFAULTS: u64 = 256;

pub(super) fn findings(watch: &MachineWatch) -> Vec<Found> {
    let of = |group: &BudgetUse| {
        let processors = group.before.processors.zip(group.after.processors);
        let memory = group.before.memory.zip(group.after.memory);
        let (kills, hits) = match memory {
            Some((before, after)) => {
                (killed(watch, group, before, after), at_limit(watch, group, before, after))
            }
            None => (None, None),
        };
        let throttled = processors.and_then(|it| throttled(watch, group, it.0, it.1));
        let tasks = group.before.tasks.zip(group.after.tasks);
        let refused = tasks.and_then(|it| refused(watch, group, it.0, it.1));
        let members = group.members.iter().map(|process| Subject::Process(*process));
        let itself: Vec<Subject> =
            members.chain([Subject::Group(group.after.name.clone())]).collect();
        // What it gives up and reads again is of the machine's memory.
        let its_memory = || itself.iter().cloned().chain([Subject::Memory]);
        let found = [
            throttled.map(|finding| finding.about(itself.iter().cloned())),
            kills.map(|finding| finding.about(itself.iter().cloned())),
            hits.map(|finding| finding.about(its_memory())),
            refused.map(|finding| finding.about(itself.iter().cloned())),
        ];
        found.into_iter().flatten().collect::<Vec<_>>()
    };
    watch.budgets.iter().flat_map(of).collect()
}

/// Processes of a group, those that ran or waited most first.
fn names(watch: &MachineWatch, group: &BudgetUse) -> String {
    let mut members: Vec<_> = group
        .members
        .iter()
        .filter_map(|number| Some((*number, watch.tasks.get(number)?)))
        .collect();
    members.sort_by_key(|(_, seen)| core::cmp::Reverse(seen.ran_ns.saturating_add(seen.queued_ns)));
    if members.is_empty() {
        return processes(group.members.len());
    }
    some(members.iter().map(|(number, seen)| process(&seen.name, *number)))
}

fn throttled(
    watch: &MachineWatch,
    group: &BudgetUse,
    before: ProcessorBudget,
    after: ProcessorBudget,
) -> Option<Finding> {
    let periods = after.periods.saturating_sub(before.periods);
    let stopped = after.throttled.saturating_sub(before.throttled);
    let stopped_ns = after.throttled_us.saturating_sub(before.throttled_us).saturating_mul(1000);
    let Budget { folder, name, .. } = &group.after;
    let ProcessorBudget { quota_us, period_us, unlimited, .. } = after;
    let file = &folder.join(after.file);
    let quota = UsedUp { file, unlimited, quota_us, period_us, periods, stopped };
    if !quota.is_often() {
        return None;
    }
    let is_long = stopped_ns.saturating_mul(100) >= watch.ns.saturating_mul(LONG);
    let stopped_for = format!("stopped for {} in all, added up over processors", time(stopped_ns));
    Some(Finding {
        kind: "host.cgroup_cpu",
        severity: if is_long { Severity::Problem } else { Severity::Warning },
        reach: usize::try_from(stopped).unwrap_or(usize::MAX),
        what: format!(
            "{} waits for the processor quota of its cgroup {name}: {} of one processor",
            names(watch, group),
            percent(quota_us, period_us),
        ),
        evidence: quota.evidence().into_iter().chain([stopped_for]).collect(),
        cause: format!("{}: answers come late by up to a period.", quota::CAUSE),
        remedies: quota.remedies(),
    })
}

fn killed(
    watch: &MachineWatch,
    group: &BudgetUse,
    before: MemoryBudget,
    after: MemoryBudget,
) -> Option<Finding> {
    let kills = after.kills.saturating_sub(before.kills);
    // A process of a group below counts here, too: whose limit it was, that one has met.
    let is_own = after.hits > before.hits;
    (kills > 0 && is_own).then(|| Finding {
        kind: "host.oom",
        severity: Severity::Problem,
        reach: usize::try_from(kills).unwrap_or(usize::MAX),
        what: format!(
            "the kernel killed {} of the cgroup {}: its memory limit is {}",
            processes(usize::try_from(kills).unwrap_or(usize::MAX)),
            group.after.name,
            ByteSize(after.limit),
        ),
        evidence: vec![
            format!("{}: oom_kill rose by {kills} while we looked", group.after.folder.display()),
            format!("it has {} now; {} are in it", ByteSize(after.used), names(watch, group)),
        ],
        cause: "The group needs more memory than it may have, and nothing of it can be given up."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("a higher limit (MemoryMax=, the container's limit)"),
            Remedy::by_hand("less memory: see which process grows (dmesg says which was killed)"),
        ],
    })
}

/// At its limit, as far as a look in between can show it.
fn is_nearly_full(used: u64, limit: u64) -> bool {
    used.saturating_mul(10) >= limit.saturating_mul(9)
}

/// A group that lives from hand to mouth: it is at its limit, and needs again what it gave up.
fn at_limit(
    watch: &MachineWatch,
    group: &BudgetUse,
    before: MemoryBudget,
    after: MemoryBudget,
) -> Option<Finding> {
    let hits = after.hits.saturating_sub(before.hits);
    let refaults = after.refaults.saturating_sub(before.refaults);
    let is_full = is_nearly_full(after.used, after.limit);
    let each_s = units::number::per_second(refaults, watch.ns);
    if hits == 0 || !is_full || each_s < REFAULTS {
        return None;
    }
    let lost = ByteSize(each_s.saturating_mul(watch.page_bytes.max(1)));
    Some(Finding {
        kind: "host.cgroup_memory",
        severity: Severity::Problem,
        reach: usize::try_from(refaults).unwrap_or(usize::MAX),
        what: format!(
            "the cgroup {} is at its memory limit of {} and reads {lost}/s again that it had",
            group.after.name,
            ByteSize(after.limit),
        ),
        evidence: vec![
            format!("in it: {}", names(watch, group)),
            format!("{} of {} are used", ByteSize(after.used), ByteSize(after.limit)),
            format!("it met the limit {hits} times; {refaults} pages that it gave up came back"),
        ],
        cause: "Its working set is larger than its limit. The kernel gives up pages that the \
                group needs again at once, and reads them from the disk or from swap."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("a higher limit (MemoryMax=, the container's limit)"),
            Remedy::by_hand("a smaller working set: caches, heaps, fewer workers"),
        ],
    })
}

/// A group that may start no more processes and threads, and tried to. Whose limit it was is told
/// by how many it has: what is refused counts in groups below the limit, too.
fn refused(
    watch: &MachineWatch,
    group: &BudgetUse,
    before: TaskBudget,
    after: TaskBudget,
) -> Option<Finding> {
    let refused = after.refused.saturating_sub(before.refused);
    let is_full = is_nearly_full(after.used, after.limit);
    let Budget { folder, name, .. } = &group.after;
    (refused > 0 && is_full).then(|| Finding {
        kind: "host.cgroup_tasks",
        severity: Severity::Problem,
        reach: usize::try_from(refused).unwrap_or(usize::MAX),
        what: format!(
            "the cgroup {name} may start no more processes and threads: it has {} of {}",
            after.used, after.limit,
        ),
        evidence: vec![
            format!("{}/pids.events: {refused} were refused while we looked", folder.display()),
            format!("in it: {}", names(watch, group)),
        ],
        cause: "Each start of a process or a thread fails (fork, clone: EAGAIN), which programs \
                report as a lack of memory or of resources."
            .to_owned(),
        remedies: vec![
            Remedy {
                what: "a higher limit, or none: who runs the group has set it (TasksMax= of \
                       systemd, a container's limit)"
                    .to_owned(),
                now: vec![format!("echo max > '{}/pids.max'", folder.display())],
                for_good: Vec::new(),
            },
            Remedy::by_hand("see what it starts and does not wait for: ps -eLf"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::seen::TaskUse;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn watch(before: Budget, after: Budget) -> MachineWatch {
        let members = BTreeSet::from([7, 8]);
        let task = |ran_ns| TaskUse { name: "app".to_owned(), ran_ns, ..TaskUse::default() };
        MachineWatch {
            ns: 10 * SECOND,
            page_bytes: 4096,
            tasks: [(7, task(1)), (8, task(2))].into_iter().collect(),
            budgets: vec![BudgetUse { before, after, members }],
            ..MachineWatch::default()
        }
    }

    fn quota(periods: u64, throttled: u64, throttled_us: u64) -> Budget {
        Budget {
            name: "/web".to_owned(),
            processors: Some(ProcessorBudget {
                file: "cpu.max",
                unlimited: "max",
                quota_us: 20_000,
                period_us: 100_000,
                periods,
                throttled,
                throttled_us,
            }),
            ..Budget::default()
        }
    }

    fn memory(used: u64, hits: u64, refaults: u64, kills: u64) -> Budget {
        let memory = MemoryBudget { limit: 100 << 20, used, hits, refaults, kills };
        Budget { name: "/db".to_owned(), memory: Some(memory), ..Budget::default() }
    }

    fn kinds(watch: &MachineWatch) -> Vec<(&'static str, Severity)> {
        findings(watch).iter().map(|it| (it.kind, it.severity)).collect()
    }

    #[test]
    fn a_group_that_is_stopped_in_its_periods_waits_for_its_quota() {
        let stopped = watch(quota(0, 0, 0), quota(100, 90, 7_000_000));
        assert_eq!(kinds(&stopped), [("host.cgroup_cpu", Severity::Problem)]);
        let found = findings(&stopped);
        assert!(found[0].what.starts_with("app (process 8), app (process 7) waits"), "{found:?}");
        assert!(found[0].what.ends_with("20 % of one processor"), "{found:?}");
        // Now and then, as any group with a quota is.
        assert_eq!(kinds(&watch(quota(0, 0, 0), quota(100, 5, 100_000))), []);
        // It was stopped before the watch only.
        assert_eq!(kinds(&watch(quota(100, 90, 7_000_000), quota(200, 90, 7_000_000))), []);
    }

    #[test]
    fn a_group_that_is_refused_threads_is_at_its_limit() {
        let tasks = |used, refused| Budget {
            name: "/jobs".to_owned(),
            tasks: Some(TaskBudget { limit: 20, used, refused }),
            ..Budget::default()
        };
        let full = watch(tasks(20, 5), tasks(20, 155));
        assert_eq!(kinds(&full), [("host.cgroup_tasks", Severity::Problem)]);
        assert!(findings(&full)[0].what.ends_with("it has 20 of 20"));
        assert_eq!(kinds(&watch(tasks(20, 155), tasks(20, 155))), []);
        // A group below another one, whose limit it was.
        assert_eq!(kinds(&watch(tasks(3, 5), tasks(3, 155))), []);
    }

    #[test]
    fn a_killed_process_is_of_the_group_that_met_its_limit() {
        // Counted in the group above, too, which has space.
        let above = watch(memory(10 << 20, 500, 0, 1), memory(10 << 20, 500, 0, 3));
        assert_eq!(kinds(&above), []);
    }

    #[test]
    fn a_group_at_its_memory_limit_matters_when_it_needs_again_what_it_gave_up() {
        let full = 99 << 20;
        let thrashing = watch(memory(full, 0, 0, 0), memory(full, 500, 10_000, 0));
        assert_eq!(kinds(&thrashing), [("host.cgroup_memory", Severity::Problem)]);
        // Files that are read once fill the limit, and nobody needs them again.
        assert_eq!(kinds(&watch(memory(full, 0, 0, 0), memory(full, 9000, 10, 0))), []);
        let dying = watch(memory(full, 0, 0, 1), memory(10 << 20, 500, 10, 3));
        assert_eq!(kinds(&dying), [("host.oom", Severity::Problem)]);
    }
}
