//! Findings on machines that are made up, and what differs between two.

use diagnose::Diagnosis;
use diagnose::machine::{MachineWatch, compare, diagnose};
use observe::facts::Facts;

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
    is(&of(&[("mount./data", "ext4 rw,strictatime /dev/sda1")]), &["host.access_times"]);
    is(&of(&[("mount./data", "ext4 rw,relatime /dev/sda1")]), &[]);
}

#[test]
fn pressure_counts_while_it_lasts() {
    let at = |recent, minute, full| {
        moving(
            &[],
            &[
                ("pressure.io.some.avg10", recent),
                ("pressure.io.some.avg60", minute),
                ("pressure.io.full.avg60", full),
            ],
        )
    };
    is(&at("40.00", "30.50", "1.00"), &["host.pressure_io"]);
    assert!(at("40.00", "30.50", "1.00").findings[0].what.contains("31 % of the time"));
    is(&at("0.50", "30.50", "1.00"), &[]);
    is(&at("40.00", "3.50", "1.00"), &[]);
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
