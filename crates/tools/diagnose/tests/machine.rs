//! Findings on machines that are made up, and what differs between two.

use std::collections::BTreeMap;

use diagnose::machine::{BudgetUse, MachineWatch, TaskUse, compare, diagnose};
use findings::{Diagnosis, Severity};
use observe::budgets::{Budget, ProcessorBudget};
use observe::facts::Facts;
use observe::{ProcessorCounters, ProcessorTimes};

fn facts(pairs: &[(&str, &str)]) -> Facts {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn of(pairs: &[(&str, &str)]) -> Diagnosis {
    diagnose(&MachineWatch { facts: facts(pairs), ..MachineWatch::default() })
}

fn moving(before: &[(&str, &str)], after: &[(&str, &str)]) -> Diagnosis {
    let (before, after) = (facts(before), facts(after));
    diagnose(&MachineWatch { before, after, ..MachineWatch::default() })
}

#[track_caller]
fn is(report: &Diagnosis, kinds: &[&str]) {
    let found: Vec<&str> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(found, kinds, "{report:?}");
}

#[test]
fn the_scheduler_that_fits_depends_on_the_disk_and_on_who_orders_requests_besides() {
    let line = "none [mq-deadline] kyber";
    let virtual_disk = ("block.vda.queue.scheduler", line);
    let guest = of(&[virtual_disk, ("cpu.flags", "fpu hypervisor")]);
    is(&guest, &["host.scheduler"]);
    assert!(guest.is_clean(), "a note");
    let remedy = &guest.findings[0].remedies[0];
    assert_eq!(remedy.now, ["echo none > /sys/block/vda/queue/scheduler"]);
    assert!(remedy.for_good[0].contains("KERNEL==\"vda\""), "{remedy:?}");
    is(&of(&[virtual_disk, ("cpu.flags", "fpu")]), &[]);
    is(&of(&[("block.nvme0n1.queue.scheduler", line)]), &["host.scheduler"]);
    is(&of(&[("block.nvme0n1.queue.scheduler", "[none] mq-deadline")]), &[]);
    let turning = |scheduler| {
        of(&[
            ("block.sda.queue.scheduler", scheduler),
            ("block.sda.queue.rotational", "1"),
            ("block.sda.driver", "sd"),
        ])
    };
    is(&turning(line), &[]);
    let absent = turning("[none]");
    is(&absent, &["host.scheduler"]);
    assert_eq!(absent.findings[0].remedies[0].now[0], "modprobe mq-deadline");
    // What is built on others has none that matters.
    is(&of(&[("block.md0.queue.scheduler", line), ("block.md0.on", "sda sdb")]), &[]);
}

#[test]
fn arrays_requests_clocks_governors_and_access_times_are_looked_at() {
    let disk = ("block.md0.queue.scheduler", "none");
    is(&of(&[disk, ("block.md0.md.degraded", "1")]), &["host.array"]);
    let resync = [disk, ("block.md0.md.degraded", "0"), ("block.md0.md.sync_action", "check")];
    is(&of(&resync), &["host.array"]);
    is(&of(&[disk, ("block.md0.md.degraded", "0"), ("block.md0.md.sync_action", "idle")]), &[]);
    let cut = |now| {
        of(&[
            ("block.sda.queue.scheduler", "[none]"),
            ("block.sda.queue.max_sectors_kb", now),
            ("block.sda.queue.max_hw_sectors_kb", "32767"),
        ])
    };
    is(&cut("128"), &["host.request_size"]);
    is(&cut("1280"), &[]);
    is(&of(&[("machine.clock_source", "hpet")]), &["host.clock"]);
    is(&of(&[("machine.clock_source", "kvm-clock")]), &[]);
    let governor =
        |driver, name| of(&[("cpu0.scaling_governor", name), ("cpu0.scaling_driver", driver)]);
    is(&governor("acpi-cpufreq", "powersave"), &["host.governor"]);
    is(&governor("intel_pstate", "powersave"), &[]);
    is(&governor("acpi-cpufreq", "performance"), &[]);
    // As the kernel shows strictatime.
    is(&of(&[("mount./data", "ext4 rw,errors=continue /dev/sda1")]), &["host.access_times"]);
    is(&of(&[("mount./data", "ext4 rw,lazytime /dev/sda1")]), &[]);
    is(&of(&[("mount./boot", "vfat rw,fmask=0022 /dev/sda1")]), &[]);
    is(&of(&[("mount./data", "ext4 rw,relatime /dev/sda1")]), &[]);
}

#[test]
fn pressure_counts_while_it_lasts() {
    // Of ten seconds.
    let at = |recent, some_us, full_us| MachineWatch {
        ns: 10_000_000_000,
        before: facts(&[("pressure.io.some.total", "1000"), ("pressure.io.full.total", "10")]),
        after: facts(&[
            ("pressure.io.some.avg10", recent),
            ("pressure.io.some.avg60", "3.50"),
            ("pressure.io.some.total", some_us),
            ("pressure.io.full.total", full_us),
        ]),
        ..MachineWatch::default()
    };
    let waits = diagnose(&at("40.00", "3051000", "1010"));
    is(&waits, &["host.pressure_io"]);
    assert!(waits.findings[0].what.contains("31 % of the time"), "{waits:?}");
    assert_eq!(waits.findings[0].severity, Severity::Warning);
    let stands = diagnose(&at("40.00", "3051000", "2000010"));
    assert_eq!(stands.findings[0].severity, Severity::Problem);
    is(&diagnose(&at("0.50", "3051000", "1010")), &[]);
    is(&diagnose(&at("40.00", "351000", "1010")), &[]);
}

#[test]
fn counters_count_while_we_look() {
    let dropped = |count| [("softnet.0.dropped", count), ("softnet.0.processed", "9")];
    is(&moving(&dropped("5"), &dropped("8")), &["host.softnet"]);
    is(&moving(&dropped("5"), &dropped("5")), &[]);
    let swapped = |count| [("vmstat.pswpin", count)];
    is(&moving(&swapped("0"), &swapped("1000")), &["host.swapping"]);
    is(&moving(&swapped("1000"), &swapped("1000")), &[]);
    let memory = |free| moving(&[], &[("memory.MemTotal", "1000"), ("memory.MemAvailable", free)]);
    is(&memory("40"), &["host.memory"]);
    is(&memory("60"), &[]);
}

#[test]
fn the_worst_suspects_come_first_and_what_is_alike_not_at_all() {
    let there = facts(&[
        ("sysctl.kernel.x", "1"),
        ("iommu.0.type", "DMA"),
        ("zone", "a"),
        ("mitigation.meltdown", "Mitigation: PTI"),
        ("same", "1"),
    ]);
    let here = facts(&[
        ("sysctl.kernel.x", "2"),
        ("iommu.0.type", "DMA-FQ"),
        ("mitigation.meltdown", "Vulnerable"),
        ("same", "1"),
        ("block.sda.queue.scheduler", "[none]"),
    ]);
    let found = compare(&there, &here);
    let names: Vec<&str> = found.iter().map(|difference| &*difference.name).collect();
    assert_eq!(
        names,
        [
            "iommu.0.type",
            "mitigation.meltdown",
            "block.sda.queue.scheduler",
            "sysctl.kernel.x",
            "zone"
        ]
    );
    assert_eq!((found[2].theirs.as_deref(), found[4].ours.as_deref()), (None, None));
    assert!(found[0].why.is_some() && found[4].why.is_none());
    assert_eq!(compare(&here, &here), []);
}

#[test]
fn processors_are_short_only_while_they_are_busy() {
    let times = |busy_s: u64, idle_s: u64| ProcessorCounters {
        all: ProcessorTimes {
            user_ns: busy_s * 1_000_000_000,
            idle_ns: idle_s * 1_000_000_000,
            ..ProcessorTimes::default()
        },
        ..ProcessorCounters::default()
    };
    let task = |name: &str, ran_s: u64, queued_s: u64| TaskUse {
        name: name.to_owned(),
        ran_ns: ran_s * 1_000_000_000,
        queued_ns: queued_s * 1_000_000_000,
        ..TaskUse::default()
    };
    let at = |busy_s, idle_s| MachineWatch {
        ns: 10_000_000_000,
        before: facts(&[("pressure.cpu.some.total", "0")]),
        after: facts(&[
            ("pressure.cpu.some.avg10", "80.00"),
            ("pressure.cpu.some.avg60", "20.00"),
            ("pressure.cpu.some.total", "9000000"),
        ]),
        processors: Some((times(0, 0), times(busy_s, idle_s))),
        tasks: BTreeMap::from([(12, task("stress", 10, 5)), (40, task("database", 1, 6))]),
        ..MachineWatch::default()
    };
    let short = diagnose(&at(20, 0));
    is(&short, &["host.pressure_cpu"]);
    let evidence = short.findings[0].evidence.join("\n");
    assert!(evidence.contains("the processors have stress (process 12) 100 %"), "{evidence}");
    assert!(evidence.contains("for them wait database (process 40) 60 %"), "{evidence}");
    // Who waits beside an idle processor waits for something else: a quota, or his own few.
    is(&diagnose(&at(10, 10)), &[]);
}

#[test]
fn a_quota_explains_the_pressure_of_its_own_group_only() {
    let times = |busy_s: u64| ProcessorCounters {
        all: ProcessorTimes { user_ns: busy_s * 1_000_000_000, ..ProcessorTimes::default() },
        ..ProcessorCounters::default()
    };
    let task = |queued_s: u64| TaskUse {
        name: "app".to_owned(),
        queued_ns: queued_s * 1_000_000_000,
        ..TaskUse::default()
    };
    let quota = |throttled| Budget {
        name: "/pod".to_owned(),
        processors: Some(ProcessorBudget {
            quota_us: 20_000,
            period_us: 100_000,
            periods: throttled,
            throttled,
            ..ProcessorBudget::default()
        }),
        ..Budget::default()
    };
    let cause = |others: &[(u32, u64)]| {
        let mut tasks = BTreeMap::from([(7, task(8)), (8, task(8))]);
        tasks.extend(others.iter().map(|(number, queued_s)| (*number, task(*queued_s))));
        let report = diagnose(&MachineWatch {
            ns: 10_000_000_000,
            before: facts(&[("pressure.cpu.some.total", "0")]),
            after: facts(&[
                ("pressure.cpu.some.avg10", "80.00"),
                ("pressure.cpu.some.avg60", "20.00"),
                ("pressure.cpu.some.total", "9000000"),
            ]),
            processors: Some((times(0), times(20))),
            tasks,
            budgets: vec![BudgetUse { before: quota(0), after: quota(90), members: [7, 8].into() }],
            ..MachineWatch::default()
        });
        let at = report.findings.iter().position(|it| it.kind == "host.pressure_cpu").unwrap();
        report.explanation(at).map(|at| report.findings[at].kind)
    };
    assert_eq!(cause(&[]), Some("host.cgroup_cpu"));
    // A build beside it, whose processes wait for each other.
    assert_eq!(cause(&[(20, 9), (21, 9), (22, 9), (23, 9)]), None);
}

#[test]
fn mounted_partitions_begin_where_blocks_of_the_disk_begin() {
    let at = |start, mount| {
        of(&[
            ("block.sda.queue.scheduler", "[mq-deadline]"),
            ("block.sda.partition.sda1.start", start),
            mount,
        ])
    };
    let mounted = ("mount./data", "ext4 rw,relatime /dev/sda1");
    let found = at("63", mounted);
    is(&found, &["host.misaligned"]);
    assert!(found.findings[0].what.starts_with("sda1 (/data)"), "{found:?}");
    is(&at("2048", mounted), &[]);
    is(&at("63", ("mount./other", "ext4 rw,relatime /dev/sdb1")), &[]);
    let looped = |offset| {
        of(&[
            ("block.loop3.queue.scheduler", "[none]"),
            ("block.loop3.loop.offset", offset),
            ("mount./image", "ext4 rw,relatime /dev/loop3"),
        ])
    };
    is(&looped("32256"), &["host.misaligned"]);
    is(&looped("1048576"), &[]);
}

#[test]
fn memory_that_ran_out_is_told_with_how_many_were_killed() {
    let found = moving(&[("vmstat.oom_kill", "3")], &[("vmstat.oom_kill", "5")]);
    is(&found, &["host.oom"]);
    assert!(found.findings[0].what.contains("2 processes"), "{found:?}");
}
