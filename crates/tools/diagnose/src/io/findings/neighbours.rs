//! A process that waits for a disk which another one keeps busy.

use std::collections::BTreeMap;

use host::DeviceNumber;
use units::ByteSize;

use super::super::tally::{DiskSeen, PartOfDisk};
use super::super::watch::IoWatch;
use super::subjects;
use findings::words::{percent, time};
use findings::{Finding, Found, Remedy, Severity};

/// Hundredths of the disk's time that one process has.
const OWNS: u64 = 75;
/// Hundredths of the watch in which the disk has something to do.
const BUSY: u64 = 80;
/// Hundredths of the watch that the other one waits at least.
const WAITS: u64 = 30;
/// Requests of the one that waits: of fewer a mean says nothing.
const ENOUGH: u64 = 20;
/// The wait of a request is so many times what the fastest tenth of requests takes.
const LONGER: u64 = 3;
/// Or it takes so long, and the disk has done so many others meanwhile: one that serves many at the
/// same time, as flash does, is not that slow.
const LONG_NS: u64 = 5_000_000;
const MEANWHILE: u64 = 4;
const FEW_MEANWHILE: u64 = 2;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    watch.disks.iter().filter_map(|(disk, seen)| of(watch, *disk, seen)).collect()
}

fn of(watch: &IoWatch, disk: DeviceNumber, seen: &DiskSeen) -> Option<Found> {
    let by_time = seen.by.iter().max_by_key(|(_, part)| part.device_ns)?;
    // Who has one request at the disk all the time has much of the time, and little of the disk.
    let by_bytes = seen.by.iter().max_by_key(|(_, part)| part.all.bytes)?;
    kept(watch, disk, seen, by_time).or_else(|| kept(watch, disk, seen, by_bytes))
}

/// A process that waits behind this one.
fn kept(
    watch: &IoWatch,
    disk: DeviceNumber,
    seen: &DiskSeen,
    (&owner, part): (&u32, &PartOfDisk),
) -> Option<Found> {
    let all_bytes: u64 = seen.by.values().map(|part| part.all.bytes).sum();
    let of_time = part.device_ns.saturating_mul(100) / seen.device_ns.max(1);
    let of_bytes = part.all.bytes.saturating_mul(100) / all_bytes.max(1);
    let busy_ns = watch.busy_ns(disk);
    // One request at a time makes another one wait for one request.
    let is_busy = watch.is_share(seen.device_ns, 100) && watch.is_share(busy_ns, BUSY);
    if of_time.max(of_bytes) < OWNS || !is_busy {
        return None;
    }
    let count: u64 = seen.operations.values().map(|of| of.all.count).sum();
    let each_ns = busy_ns / count.max(1);
    let alone_ns = seen.operations.values().map(|of| of.total.quantile_ns(100)).min()?;
    let is_kept = |(process, other): &(&u32, &PartOfDisk)| {
        let mean_ns = other.total_ns / other.all.count.max(1);
        let has_little = has_little(watch, other, part);
        // Of few bytes the disk's own time is a small part of what it takes for one of the others.
        let meanwhile = if has_little { FEW_MEANWHILE } else { MEANWHILE };
        **process != owner
            && other.all.count >= ENOUGH
            && watch.is_share(other.total_ns, WAITS)
            && (other.device_ns < part.device_ns / 4 || has_little)
            && (mean_ns >= alone_ns.max(1).saturating_mul(LONGER)
                || mean_ns >= LONG_NS.max(each_ns.saturating_mul(meanwhile)))
            && !is_kernel(watch, **process)
    };
    let (&waits, other) = seen.by.iter().filter(is_kept).max_by_key(|(_, other)| other.total_ns)?;
    let name = watch.device_name(disk);
    let mean_ns = other.total_ns / other.all.count.max(1);
    let finding = Finding {
        kind: "io.neighbour",
        severity: Severity::Warning,
        reach: usize::try_from(other.all.count).unwrap_or(usize::MAX),
        what: format!(
            "{} waits for {name}, which {} keeps busy",
            watch.process_label(waits),
            keeper(watch, disk, owner),
        ),
        evidence: vec![
            format!(
                "{} had {of_time} % of the time of {name} and {of_bytes} % of its bytes: {} \
                 requests, {}/s",
                watch.process_label(owner),
                part.all.count,
                ByteSize(watch.per_second(part.all.bytes)),
            ),
            format!(
                "{} had {}: {} requests, {} each in the mean; it waited {} of {:.1} s for them",
                watch.process_label(waits),
                percent(other.device_ns, seen.device_ns),
                other.all.count,
                time(mean_ns),
                time(other.total_ns),
                watch.seconds(),
            ),
            format!(
                "{name} did a request every {}; the fastest tenth of all took {} at most",
                time(each_ns),
                time(alone_ns)
            ),
        ],
        cause: format!("{name} {BEHIND}"),
        remedies: remedies(watch, owner),
    };
    Some(finding.about(subjects::process_at(watch, waits, disk)))
}

/// Why one waits for another one.
const BEHIND: &str = "serves requests as they come. Those of a process that asks for one at a time \
                      stand behind all that the other one has under way.";

/// One request at a time, and an eighth of the bytes at most.
fn has_little(watch: &IoWatch, other: &PartOfDisk, owner: &PartOfDisk) -> bool {
    let watched_ns = u64::try_from(watch.ns).unwrap_or(0);
    other.total_ns <= watched_ns && other.all.bytes.saturating_mul(8) <= owner.all.bytes
}

fn is_kernel(watch: &IoWatch, process: u32) -> bool {
    watch.processes.get(&process).is_some_and(|seen| seen.is_kernel)
}

/// Who keeps a disk busy. What the kernel writes others have changed before.
fn keeper(watch: &IoWatch, disk: DeviceNumber, owner: u32) -> String {
    let label = watch.process_label(owner);
    let files = watch.files.values().filter(|seen| seen.disk == disk);
    let written = files.filter(|seen| seen.by.get(&owner).is_some_and(|[_, it]| it.bytes > 0));
    let mut changers = BTreeMap::<u32, u64>::new();
    for (process, pages) in written.flat_map(|seen| &seen.changed_by) {
        *changers.entry(*process).or_default() += pages;
    }
    let most = changers.into_iter().max_by_key(|(_, pages)| *pages);
    match most.filter(|_| is_kernel(watch, owner)) {
        Some((process, _)) => {
            format!("{}, whose changes the kernel writes,", watch.process_label(process))
        }
        None => label,
    }
}

fn remedies(watch: &IoWatch, owner: u32) -> Vec<Remedy> {
    let less = if is_kernel(watch, owner) {
        // Priorities are of threads, and the kernel's own have none to be changed.
        Remedy::by_hand(
            "less for the other one: a limit for its group (io.max of cgroups version 2 counts \
             what the kernel writes for it), or O_DIRECT for what is written and not read again",
        )
    } else {
        Remedy {
            what: "less for the other one: a limit or a weight for its group, or a class that \
                   waits (with the schedulers bfq and mq-deadline)"
                .to_owned(),
            now: vec![format!("ionice -c 3 -p {owner}")],
            for_good: vec!["IOWeight= or IOReadBandwidthMax= in its unit".to_owned()],
        }
    };
    vec![less, Remedy::by_hand("another disk for one of them")]
}
