//! What the machine is short of: time lost to waiting for processors, memory or disks
//! (Documentation/accounting/psi.rst), memory that is nearly gone, packets that the kernel dropped
//! because a processor was too slow.

use units::ByteSize;

use super::MachineWatch;
use crate::finding::{Finding, Remedy, Severity};
use crate::words::percent;

/// Hundredths of a percent of the time over a minute in which something waited.
const PRESSURE_MIN: u64 = 2_000;

pub(super) fn findings(watch: &MachineWatch) -> Vec<Finding> {
    let pressed = ["cpu", "memory", "io"].iter().filter_map(|resource| pressure(watch, resource));
    let others = [memory(watch), swapping(watch), softnet(watch)];
    pressed.chain(others.into_iter().flatten()).collect()
}

/// `12.34` as hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 100 + part.get(..2)?.parse::<u64>().ok()?)
}

fn pressure(watch: &MachineWatch, resource: &str) -> Option<Finding> {
    let share = |kind: &str, over: &str| {
        hundredths(watch.after.get(&format!("pressure.{resource}.{kind}.{over}"))?)
    };
    let some = share("some", "avg60")?;
    let full = share("full", "avg60").unwrap_or(0);
    let recent = share("some", "avg10")?;
    // What has just ended is no reason for anything now.
    if some < PRESSURE_MIN || recent < PRESSURE_MIN / 2 {
        return None;
    }
    let (name, remedy) = match resource {
        "cpu" => {
            ("the processors", "see what runs (top), or give it processors of its own (cpuset)")
        }
        "memory" => ("memory", "see what holds it, or limit it (memory.max of its control group)"),
        _ => ("the disks", "see which process reads or writes, and which disk is slow"),
    };
    let is_full = full >= PRESSURE_MIN / 2;
    Some(Finding {
        kind: match resource {
            "cpu" => "host.pressure_cpu",
            "memory" => "host.pressure_memory",
            _ => "host.pressure_io",
        },
        severity: if is_full { Severity::Problem } else { Severity::Warning },
        reach: usize::try_from(some).unwrap_or(usize::MAX),
        what: format!("work waits for {name} {} of the time", percent(some, 10_000)),
        evidence: vec![
            format!(
                "/proc/pressure/{resource}, a minute: some work waited {}",
                percent(some, 10_000)
            ),
            format!("nothing else could run meanwhile: {}", percent(full, 10_000)),
        ],
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
