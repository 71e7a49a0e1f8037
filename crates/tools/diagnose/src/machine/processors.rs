//! Processors: who has them and who waits, threads that may run on too few of them, packets that
//! keep one busy, a host that gives them to others.

use std::collections::{BTreeMap, BTreeSet};

use observe::{ProcessorTimes, listed};

use super::seen::{MachineWatch, TaskUse};
use findings::words::{process, processes, some, time};
use findings::{Finding, Found, Remedy, Severity, Subject};

/// Hundredths of the watch that a process waits for a processor at least.
const WAITS: u64 = 20;
/// Hundredths of its time that a processor is busy where there is no more to have.
const BUSY: u64 = 90;
/// Hundredths of its time that a processor does nothing where there is some to have.
const IDLE: u64 = 50;
/// Hundredths of its time that a processor spends on what interrupts left for later.
const SOFTIRQ: u64 = 50;
/// Half of one of so many processors is a share of all that matters.
const FEW: usize = 4;
/// Hundredths of the processors' time: with more of it idle they are not short.
const SPARE: u64 = 20;
/// Hundredths of the time that the host of a guest gives to others.
const STOLEN: u64 = 10;

pub(super) fn findings(watch: &MachineWatch) -> Vec<Found> {
    let mut findings = pinned(watch);
    findings.extend(softirq(watch));
    findings.extend(stolen(watch).map(|finding| finding.about([Subject::Processors])));
    findings
}

/// Hundredths of the time of some processors that they were idle; `None` where it is not known.
pub(super) fn idle(watch: &MachineWatch) -> Option<u64> {
    let (before, after) = watch.processors.as_ref()?;
    Some(hundredths(&after.all.since(&before.all), |times| times.idle_ns + times.io_wait_ns))
}

fn hundredths(times: &ProcessorTimes, of: fn(&ProcessorTimes) -> u64) -> u64 {
    let all = times.busy_ns() + times.idle_ns + times.io_wait_ns + times.stolen_ns;
    of(times).saturating_mul(100) / all.max(1)
}

/// What each processor did meanwhile.
fn each(watch: &MachineWatch) -> BTreeMap<u32, ProcessorTimes> {
    let Some((before, after)) = &watch.processors else { return BTreeMap::new() };
    let of = |(number, times): (&u32, &ProcessorTimes)| {
        Some((*number, times.since(before.each.get(number)?)))
    };
    after.each.iter().filter_map(of).collect()
}

/// Processes that wait for the few processors that they may have, while others do nothing.
fn pinned(watch: &MachineWatch) -> Vec<Found> {
    let each = each(watch);
    let all: BTreeSet<u32> = each.keys().copied().collect();
    let mut by_list: BTreeMap<&str, Vec<(u32, &TaskUse)>> = BTreeMap::new();
    for (number, seen) in &watch.tasks {
        let most = seen.allowed.iter().max_by_key(|(_, threads)| **threads);
        let waits = seen.queued_ns.saturating_mul(100) >= watch.ns.saturating_mul(WAITS);
        if let Some((list, _)) = most.filter(|_| waits && !seen.is_kernel) {
            by_list.entry(list).or_default().push((*number, seen));
        }
    }
    let of = |(list, waiting): (&str, Vec<(u32, &TaskUse)>)| {
        let may: BTreeSet<u32> = listed(list).into_iter().collect();
        let times = |numbers: &BTreeSet<u32>| -> Vec<(u32, ProcessorTimes)> {
            numbers.iter().filter_map(|number| Some((*number, *each.get(number)?))).collect()
        };
        let (theirs, others) = (times(&may), times(&all.difference(&may).copied().collect()));
        let is_full =
            |(_, times): &(u32, ProcessorTimes)| hundredths(times, ProcessorTimes::busy_ns) >= BUSY;
        let rests = |times: &ProcessorTimes| hundredths(times, |it| it.idle_ns + it.io_wait_ns);
        let idle: Vec<&(u32, ProcessorTimes)> =
            others.iter().filter(|(_, times)| rests(times) >= IDLE).collect();
        if theirs.is_empty() || !theirs.iter().all(is_full) || idle.is_empty() {
            return None;
        }
        let resting: Vec<String> = idle
            .iter()
            .map(|(number, times)| format!("processor {number} {} % idle", rests(times)))
            .collect();
        let about = waiting.iter().map(|(number, _)| Subject::Process(*number));
        Some(of_pinned(watch, list, &waiting, &resting).about(about))
    };
    by_list.into_iter().filter_map(of).collect()
}

fn of_pinned(
    watch: &MachineWatch,
    list: &str,
    waiting: &[(u32, &TaskUse)],
    resting: &[String],
) -> Finding {
    let names = some(waiting.iter().map(|(number, seen)| process(&seen.name, *number)));
    let word = if listed(list).len() == 1 { "processor" } else { "processors" };
    let mut evidence = vec![
        format!("waiting for {word} {list}: {names}"),
        format!("meanwhile {}", some(resting.iter().cloned())),
    ];
    let most = waiting.iter().max_by_key(|(_, seen)| seen.queued_ns);
    if let Some((number, seen)) = most {
        evidence.push(format!(
            "{} could have run for {} of {}, and ran for {}",
            process(&seen.name, *number),
            time(seen.queued_ns + seen.ran_ns),
            time(watch.ns),
            time(seen.ran_ns),
        ));
    }
    let first = waiting.first().map_or(0, |(number, _)| *number);
    let everywhere = watch.fact("cpu.online").unwrap_or("0-N");
    Finding {
        kind: "host.pinned",
        severity: Severity::Warning,
        reach: waiting.len(),
        what: format!(
            "{} may run on {word} {list} only, and {} while others are idle",
            if waiting.len() == 1 { names } else { processes(waiting.len()) },
            if waiting.len() == 1 { "waits" } else { "wait for each other" },
        ),
        evidence,
        cause: "They are bound to these processors: by taskset, by their program, or by the \
                cpuset of their group or container."
            .to_owned(),
        remedies: vec![
            Remedy {
                what: "let them run everywhere".to_owned(),
                now: vec![format!("taskset -a -p -c {everywhere} {first}")],
                for_good: Vec::new(),
            },
            Remedy::by_hand("or give each its own processor; look for CPUAffinity= and cpusets"),
        ],
    }
}

/// Processors that are busy with what interrupts left for later: packets, as a rule.
fn softirq(watch: &MachineWatch) -> Vec<Found> {
    let each = each(watch);
    let count = each.len();
    let of = |(number, times): (u32, ProcessorTimes)| {
        let share = hundredths(&times, |times| times.softirq_ns + times.irq_ns);
        if share < SOFTIRQ {
            return None;
        }
        let packets = watch.gained(&format!("softnet.{number}.processed"));
        let squeezed = watch.gained(&format!("softnet.{number}.squeezed"));
        let each_s = units::number::per_second(packets, watch.ns);
        let finding = Finding {
            kind: "host.softirq",
            severity: Severity::Warning,
            reach: usize::try_from(share).unwrap_or(usize::MAX),
            what: format!("processor {number} spends {share} % of its time on interrupts"),
            evidence: vec![
                format!("/proc/stat, cpu{number}: {share} % in irq and softirq"),
                format!(
                    "/proc/net/softnet_stat: {each_s} packets a second on it, stopped in the \
                     middle {squeezed} times"
                ),
            ],
            cause: "One processor takes what arrives at a whole interface, or a queue of it; \
                    programs that run there get what is left."
                .to_owned(),
            remedies: vec![
                Remedy::by_hand("spread its interrupts (ethtool -L, irqbalance)"),
                Remedy {
                    what: "spread packets over processors (receive packet steering)".to_owned(),
                    now: vec!["echo f > /sys/class/net/INTERFACE/queues/rx-0/rps_cpus".to_owned()],
                    for_good: Vec::new(),
                },
            ],
        };
        // Of many processors one has little of what all of them could do.
        let machine = (count <= FEW).then_some(Subject::Processors);
        Some(finding.about([Subject::Processor(number)].into_iter().chain(machine)))
    };
    each.into_iter().filter_map(of).collect()
}

fn stolen(watch: &MachineWatch) -> Option<Finding> {
    let (before, after) = watch.processors.as_ref()?;
    let share = hundredths(&after.all.since(&before.all), |times| times.stolen_ns);
    // Where a part of the time is idle, it costs some delay and no work.
    let is_short = idle(watch).is_some_and(|idle| idle < SPARE);
    (share >= STOLEN).then(|| Finding {
        kind: "host.stolen",
        severity: if is_short { Severity::Warning } else { Severity::Note },
        reach: usize::try_from(share).unwrap_or(usize::MAX),
        what: format!("the host gives {share} % of this guest's processor time to others"),
        evidence: vec![format!("/proc/stat: {share} % stolen while we looked")],
        cause: "This machine is a guest, and its host has more to do than processors.".to_owned(),
        remedies: vec![Remedy::by_hand("processors of its own, or another host")],
    })
}

#[cfg(test)]
mod tests {
    use observe::ProcessorCounters;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds in which each processor was busy for so many seconds, and in interrupts.
    fn machine(busy: &[(u64, u64)], tasks: &[(u32, TaskUse)]) -> MachineWatch {
        let of = |(busy, interrupts): &(u64, u64)| ProcessorTimes {
            user_ns: (busy - interrupts) * SECOND,
            softirq_ns: interrupts * SECOND,
            idle_ns: (10 - busy) * SECOND,
            ..ProcessorTimes::default()
        };
        let zero = busy.iter().zip(0..).map(|(_, number)| (number, ProcessorTimes::default()));
        let before = ProcessorCounters { each: zero.collect(), ..ProcessorCounters::default() };
        let each = busy.iter().zip(0..).map(|(it, number)| (number, of(it))).collect();
        let after = ProcessorCounters { each, ..ProcessorCounters::default() };
        MachineWatch {
            ns: 10 * SECOND,
            processors: Some((before, after)),
            tasks: tasks.iter().cloned().collect(),
            ..MachineWatch::default()
        }
    }

    fn waits(list: &str) -> TaskUse {
        TaskUse {
            name: "worker".to_owned(),
            ran_ns: 2 * SECOND,
            queued_ns: 7 * SECOND,
            allowed: BTreeMap::from([(list.to_owned(), 1)]),
            ..TaskUse::default()
        }
    }

    #[test]
    fn processes_that_share_a_processor_beside_an_idle_one_are_named() {
        let tasks = [(40, waits("0")), (41, waits("0"))];
        let found = findings(&machine(&[(10, 0), (0, 0)], &tasks));
        assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), ["host.pinned"]);
        assert!(found[0].evidence[0].contains("worker (process 41)"), "{found:?}");
        assert!(found[0].what.starts_with("2 processes may run on processor 0"), "{found:?}");
        // Both are busy: to let them go elsewhere would not help.
        assert_eq!(findings(&machine(&[(10, 0), (8, 0)], &tasks)), []);
        // They may run on both, and wait for something else.
        assert_eq!(findings(&machine(&[(10, 0), (0, 0)], &[(40, waits("0-1"))])), []);
        // Their processor is not busy: their group is held back.
        assert_eq!(findings(&machine(&[(3, 0), (0, 0)], &tasks)), []);
    }

    #[test]
    fn time_that_the_host_takes_is_a_warning_where_none_is_left() {
        let of = |idle_s: u64| {
            let all = ProcessorTimes {
                user_ns: (18 - idle_s) * SECOND,
                idle_ns: idle_s * SECOND,
                stolen_ns: 2 * SECOND,
                ..ProcessorTimes::default()
            };
            let after = ProcessorCounters { all, ..ProcessorCounters::default() };
            let watch = MachineWatch {
                ns: 10 * SECOND,
                processors: Some((ProcessorCounters::default(), after)),
                ..MachineWatch::default()
            };
            findings(&watch).iter().map(|it| (it.kind, it.severity)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), [("host.stolen", Severity::Warning)]);
        assert_eq!(of(10), [("host.stolen", Severity::Note)]);
    }

    #[test]
    fn interrupts_count_by_processor() {
        let found = findings(&machine(&[(8, 6), (1, 0)], &[]));
        assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), ["host.softirq"]);
        assert!(found[0].what.contains("processor 0 spends 60 %"), "{found:?}");
        assert_eq!(findings(&machine(&[(8, 4), (8, 4)], &[])), []);
    }
}
