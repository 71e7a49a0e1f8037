//! What the machine is short of: time lost to waiting for processors, memory or disks
//! (Documentation/accounting/psi.rst), memory that is nearly gone, packets that the kernel dropped
//! because a processor was too slow.

use units::ByteSize;

use super::seen::{BudgetUse, MachineWatch};
use super::shares;
use findings::words::{percent, processes};
use findings::{Finding, Found, Remedy, Severity, Subject};

/// Hundredths of a percent of the time in which something waited.
const PRESSURE_MIN: u64 = 2_000;
/// Pages that were given up and came back: of fewer, memory is no reason to wait for disks.
const REFAULTS: u64 = 256;
/// Hundredths of the processors' time: with more of it idle they are not what is short.
const IDLE: u64 = 20;

pub(super) fn findings(watch: &MachineWatch) -> Vec<Found> {
    let pressed =
        [("cpu", of_processors(watch)), ("memory", vec![Subject::Memory]), ("io", of_disks(watch))];
    let pressed = pressed
        .into_iter()
        .filter_map(|(resource, about)| Some(pressure(watch, resource)?.about(about)));
    let of_memory = [memory(watch), killed(watch)].into_iter().flatten();
    let of_memory = of_memory.map(|finding| finding.about([Subject::Memory]));
    let others = [
        swapping(watch).map(|finding| finding.about(of_swap(watch))),
        softnet(watch).map(|finding| finding.about(of_drops(watch))),
    ];
    pressed.chain(of_memory).chain(others.into_iter().flatten()).collect()
}

/// The processors, and the few processes that have half of all that is waited for them.
fn of_processors(watch: &MachineWatch) -> Vec<Subject> {
    let mut waits: Vec<(u64, u32)> =
        watch.tasks.iter().map(|(number, seen)| (seen.queued_ns, *number)).collect();
    waits.sort_unstable_by(|one, other| other.cmp(one));
    let all_ns: u64 = waits.iter().map(|(ns, _)| ns).sum();
    let mut sum_ns = 0_u64;
    let most = waits.into_iter().take_while(|(ns, _)| {
        let is_less = sum_ns.saturating_mul(2) < all_ns;
        sum_ns = sum_ns.saturating_add(*ns);
        is_less
    });
    most.map(|(_, number)| Subject::Process(number)).chain([Subject::Processors]).collect()
}

/// The programs that were seen waiting most; where none was, disks as a whole. Memory, where files
/// are read again that had been given up.
fn of_disks(watch: &MachineWatch) -> Vec<Subject> {
    let programs = watch.tasks.iter().filter(|(_, seen)| !seen.is_kernel && seen.waits > 0);
    let most = programs.clone().map(|(_, seen)| seen.waits).max().unwrap_or(0);
    let named = programs.filter(|(_, seen)| seen.waits * 2 >= most);
    let mut about: Vec<Subject> = named.map(|(number, _)| Subject::Process(*number)).collect();
    if about.is_empty() {
        about.push(Subject::Disks);
    }
    let again = ["vmstat.workingset_refault_file", "vmstat.workingset_refault_anon"];
    if again.iter().map(|name| watch.gained(name)).sum::<u64>() >= REFAULTS {
        about.push(Subject::Memory);
    }
    about
}

/// Memory, and the disks that what was moved out of it lies on.
fn of_swap(watch: &MachineWatch) -> Vec<Subject> {
    let places = watch.facts.iter().filter(|(name, _)| name.starts_with("swap."));
    let disk = |(_, place): (&String, &String)| {
        let name = place.strip_prefix("/dev/")?;
        let is_part = |fact: &String| fact.contains(&format!(".partition.{name}."));
        let whole =
            watch.facts.keys().find(|fact| is_part(fact)).and_then(|it| it.split('.').nth(1));
        Some(Subject::Disk(whole.unwrap_or(name).to_owned()))
    };
    places.filter_map(disk).chain([Subject::Memory]).collect()
}

/// The processors that dropped packets.
fn of_drops(watch: &MachineWatch) -> Vec<Subject> {
    let number = |name: &String| {
        let number = name.strip_prefix("softnet.")?.strip_suffix(".dropped")?.parse().ok()?;
        (watch.gained(name) > 0).then_some(Subject::Processor(number))
    };
    watch.after.keys().filter_map(number).collect()
}

/// `12.34` as hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 100 + part.get(..2)?.parse::<u64>().ok()?)
}

/// What pressure says of the watch, in hundredths of a percent of its time.
struct Pressure {
    /// Something waited.
    some: u64,
    /// Nothing else could run meanwhile.
    full: u64,
    /// Something waited, of the last ten seconds.
    recent: u64,
    /// The same of the last minute.
    minute: u64,
}

impl Pressure {
    fn of(watch: &MachineWatch, resource: &str) -> Option<Self> {
        let fact = |kind: &str, field: &str| format!("pressure.{resource}.{kind}.{field}");
        let mean = |kind, over| hundredths(watch.after.get(&fact(kind, over))?);
        // Totals are microseconds.
        let meanwhile = |kind| {
            let waited_ns = watch.gained(&fact(kind, "total")).saturating_mul(1000);
            let share = u128::from(waited_ns) * 10_000 / u128::from(watch.ns.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        Some(Self {
            some: meanwhile("some"),
            full: meanwhile("full"),
            recent: mean("some", "avg10")?,
            minute: mean("some", "avg60")?,
        })
    }
}

fn pressure(watch: &MachineWatch, resource: &str) -> Option<Finding> {
    let Pressure { some, full, recent, minute } = Pressure::of(watch, resource)?;
    // What has just ended is no reason for anything now.
    if some < PRESSURE_MIN || recent < PRESSURE_MIN / 2 {
        return None;
    }
    // Work that waits beside idle processors may not have them: that is another cause.
    if resource == "cpu" && super::processors::idle(watch).is_some_and(|idle| idle >= IDLE) {
        return None;
    }
    let (kind, name, remedy) = match resource {
        "cpu" => (
            "host.pressure_cpu",
            "the processors",
            "less at the same time, or more processors; who must not wait gets some of its own \
             (cpuset) or a larger share (CPUWeight=)",
        ),
        "memory" => (
            "host.pressure_memory",
            "memory",
            "see what holds it, or limit it (memory.max of its control group)",
        ),
        _ => (
            "host.pressure_io",
            "the disks",
            "see which process reads or writes, and which disk is slow",
        ),
    };
    let is_full = full >= PRESSURE_MIN / 2;
    let mut evidence = vec![format!(
        "/proc/pressure/{resource}: some work waited {} of these {:.1} s, {} of the last minute",
        percent(some, 10_000),
        core::time::Duration::from_nanos(watch.ns).as_secs_f64(),
        percent(minute, 10_000),
    )];
    evidence.push(format!("nothing else could run meanwhile: {}", percent(full, 10_000)));
    let shares = if resource == "cpu" { shares::of_processors(watch) } else { Vec::new() };
    evidence.extend(shares.into_iter().map(|share| share.what));
    Some(Finding {
        kind,
        severity: if is_full { Severity::Problem } else { Severity::Warning },
        reach: usize::try_from(some).unwrap_or(usize::MAX),
        what: format!("work waits for {name} {} of the time", percent(some, 10_000)),
        evidence,
        cause: format!("There is more to do than {name} can take."),
        remedies: vec![Remedy::by_hand(remedy)],
    })
}

fn memory(watch: &MachineWatch) -> Option<Finding> {
    let total = watch.now("memory.MemTotal")?;
    let available = watch.now("memory.MemAvailable")?;
    if available * 20 >= total {
        return None;
    }
    Some(Finding {
        kind: "host.memory",
        severity: Severity::Warning,
        reach: 1,
        what: format!(
            "only {} of {} memory can still be given out",
            ByteSize(available * 1024),
            ByteSize(total * 1024)
        ),
        evidence: vec![format!("/proc/meminfo: MemAvailable {available} kB")],
        cause: "Files are read again and again, because nothing stays in the cache.".to_owned(),
        remedies: vec![Remedy::by_hand("see what holds it (ps -eo rss,comm --sort=-rss)")],
    })
}

/// Processes that the kernel killed because memory ran out, and no group's limit was the reason.
fn killed(watch: &MachineWatch) -> Option<Finding> {
    let killed = |group: &BudgetUse| {
        let (before, after) = group.before.memory.zip(group.after.memory)?;
        let kills = after.kills.saturating_sub(before.kills);
        (after.hits > before.hits).then_some(kills)
    };
    let met: Vec<(&BudgetUse, u64)> =
        watch.budgets.iter().filter_map(|group| Some((group, killed(group)?))).collect();
    // What counts in a group, counts in those above it, too.
    let is_below = |one: &BudgetUse| {
        met.iter().any(|(other, _)| {
            let (one, other) = (&one.after.folder, &other.after.folder);
            one != other && one.starts_with(other)
        })
    };
    let by_groups = met.iter().filter(|(group, _)| !is_below(group)).map(|(_, kills)| *kills);
    let all = watch.gained("vmstat.oom_kill");
    let kills = all.saturating_sub(by_groups.fold(0, u64::saturating_add));
    (kills > 0).then(|| Finding {
        kind: "host.oom",
        severity: Severity::Problem,
        reach: usize::try_from(kills).unwrap_or(usize::MAX),
        what: format!(
            "memory ran out: the kernel killed {}",
            processes(usize::try_from(kills).unwrap_or(usize::MAX))
        ),
        evidence: vec![format!("/proc/vmstat: oom_kill rose by {kills} while we looked")],
        cause: "There was nothing left that could be given up. The kernel kills the process that \
                gives most."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "see which one it was and why it grew (dmesg | grep -i 'killed process'); less work, \
             more memory, or a limit for the group that grows",
        )],
    })
}

fn swapping(watch: &MachineWatch) -> Option<Finding> {
    let (brought, put) = (watch.gained("vmstat.pswpin"), watch.gained("vmstat.pswpout"));
    if brought + put < 256 {
        return None;
    }
    Some(Finding {
        kind: "host.swapping",
        severity: Severity::Problem,
        reach: 1,
        what: "memory is being moved to and from the disk".to_owned(),
        evidence: vec![format!(
            "{brought} pages came from swap and {put} went there while we looked"
        )],
        cause: "There is less memory than what runs uses.".to_owned(),
        remedies: vec![
            Remedy::by_hand("less work, or more memory"),
            Remedy::sysctl("give up file cache first", "vm.swappiness", "1"),
        ],
    })
}

fn softnet(watch: &MachineWatch) -> Option<Finding> {
    let sum = |what: &str| -> u64 {
        let names = watch.after.keys();
        let of = names.filter(|name| name.starts_with("softnet.") && name.ends_with(what));
        of.map(|name| watch.gained(name)).sum()
    };
    let (dropped, processed) = (sum(".dropped"), sum(".processed"));
    if dropped == 0 {
        return None;
    }
    Some(Finding {
        kind: "host.softnet",
        severity: Severity::Problem,
        reach: usize::try_from(dropped).unwrap_or(usize::MAX),
        what: format!("the kernel dropped {dropped} received packets: a processor was too slow"),
        evidence: vec![
            format!("/proc/net/softnet_stat: {dropped} of {processed} dropped while we looked"),
            format!("{} times a processor had to stop in the middle", sum(".squeezed")),
        ],
        cause: "The queue between the driver and the protocols was full: one processor takes the \
                packets of a whole interface, or takes something else first."
            .to_owned(),
        remedies: vec![
            Remedy::sysctl("a longer queue", "net.core.netdev_max_backlog", "10000"),
            Remedy::by_hand("spread the interrupts of the interface (ethtool -L, irqbalance)"),
        ],
    })
}
