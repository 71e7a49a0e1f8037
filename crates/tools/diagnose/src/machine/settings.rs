//! Settings that cost: a slow clock, a processor that saves power, file systems that write at every
//! read.

use super::seen::MachineWatch;
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(watch: &MachineWatch) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        [clock(watch), governor(watch)].into_iter().flatten().collect();
    let mounts = watch
        .facts
        .iter()
        .filter_map(|(name, line)| Some((name.strip_prefix("mount.")?, line.as_str())));
    findings.extend(mounts.filter_map(|(place, line)| access_times(place, line)));
    findings
}

fn clock(watch: &MachineWatch) -> Option<Finding> {
    let source = watch.fact("machine.clock_source")?;
    if !matches!(source, "hpet" | "acpi_pm" | "pit" | "jiffies" | "refined-jiffies") {
        return None;
    }
    Some(Finding {
        kind: "host.clock",
        severity: Severity::Warning,
        reach: 1,
        what: format!("the clock is {source}: every look at it is a slow system call"),
        evidence: vec![
            format!("current_clocksource: {source}"),
            format!(
                "available_clocksource: {}",
                watch.fact("machine.clock_sources").unwrap_or("unknown")
            ),
        ],
        cause: "The kernel did not trust the processor's counter (dmesg | grep -i tsc says why)."
            .to_owned(),
        remedies: vec![Remedy {
            what: "the processor's counter, where it is sound".to_owned(),
            now: vec![
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
                    .to_owned(),
            ],
            for_good: vec!["add tsc=reliable to the kernel's command line".to_owned()],
        }],
    })
}

fn governor(watch: &MachineWatch) -> Option<Finding> {
    let slow = |(name, value): (&String, &String)| {
        let is_slow = matches!(&**value, "powersave" | "conservative" | "ondemand");
        // With these drivers powersave is the ordinary one, which follows the load.
        let driver = name.replace("scaling_governor", "scaling_driver");
        let driver = watch.fact(&driver).unwrap_or_default();
        let is_own = matches!(driver, "intel_pstate" | "amd-pstate-epp") && value == "powersave";
        (name.ends_with(".scaling_governor") && is_slow && !is_own).then(|| value.clone())
    };
    let slow: Vec<String> = watch.facts.iter().filter_map(slow).collect();
    let first = slow.first()?;
    Some(Finding {
        kind: "host.governor",
        severity: Severity::Warning,
        reach: slow.len(),
        what: format!("{} processors save power ({first})", slow.len()),
        evidence: vec![format!("cpufreq/scaling_governor: {first}")],
        cause: "They run slowly until there has been work for a while: bursts find them asleep."
            .to_owned(),
        remedies: vec![Remedy {
            what: "full speed".to_owned(),
            now: vec![
                "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
                    .to_owned(),
            ],
            for_good: vec![
                "cpupower frequency-set -g performance, in a unit of systemd".to_owned(),
            ],
        }],
    })
}

fn access_times(place: &str, line: &str) -> Option<Finding> {
    /// File systems on disks that record reads unless they are told not to.
    const KINDS: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"];
    let (kind, rest) = line.split_once(' ')?;
    let options = rest.split(' ').next()?;
    // The kernel shows no word where each read is recorded.
    let has = |wanted: &str| options.split(',').any(|option| option == wanted);
    let is_recorded = ["relatime", "noatime", "lazytime", "ro"].into_iter().all(|it| !has(it));
    if !KINDS.contains(&kind) || !is_recorded {
        return None;
    }
    Some(Finding {
        kind: "host.access_times",
        severity: Severity::Warning,
        reach: 1,
        what: format!("{place} writes down when each file was read last"),
        evidence: vec![format!("{place}: {options}")],
        cause: "Every read of a file becomes a write, too.".to_owned(),
        remedies: vec![Remedy {
            what: "no access times".to_owned(),
            now: vec![format!("mount -o remount,noatime {place}")],
            for_good: vec![format!("noatime among the options of {place} in /etc/fstab")],
        }],
    })
}
