//! A process that waits for a disk which another one keeps busy.

use host::DeviceNumber;
use units::ByteSize;

use super::super::tally::{DiskSeen, PartOfDisk};
use super::super::watch::IoWatch;
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

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    watch.disks.iter().filter_map(|(disk, seen)| of(watch, *disk, seen)).collect()
}

fn of(watch: &IoWatch, disk: DeviceNumber, seen: &DiskSeen) -> Option<Found> {
    let (&owner, part) = seen.by.iter().max_by_key(|(_, part)| part.device_ns)?;
    let owns = part.device_ns.saturating_mul(100) / seen.device_ns.max(1);
    // One request at a time makes another one wait for one request.
    let busy_ns = watch.busy_ns(disk);
    if owns < OWNS || !watch.is_share(seen.device_ns, 100) || !watch.is_share(busy_ns, BUSY) {
        return None;
    }
    let count: u64 = seen.operations.values().map(|of| of.all.count).sum();
    let each_ns = busy_ns / count.max(1);
    let alone_ns = seen.operations.values().map(|of| of.total.quantile_ns(100)).min()?;
    let is_kept = |(process, other): &(&u32, &PartOfDisk)| {
        let mean_ns = other.total_ns / other.all.count.max(1);
        **process != owner
            && other.all.count >= ENOUGH
            && watch.is_share(other.total_ns, WAITS)
            && other.device_ns < part.device_ns / 4
            && (mean_ns >= alone_ns.max(1).saturating_mul(LONGER)
                || mean_ns >= LONG_NS.max(each_ns.saturating_mul(MEANWHILE)))
            && !watch.processes.get(process).is_some_and(|seen| seen.is_kernel)
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
            watch.process_label(owner),
        ),
        evidence: vec![
            format!(
                "{} had {owns} % of the time of {name}: {} requests, {}/s",
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
        cause: format!(
            "{name} serves requests as they come. Those of a process that asks for one at a time \
             stand behind all that the other one has under way."
        ),
        remedies: vec![
            Remedy {
                what: "less for the other one: a limit or a weight for its group, or a class that \
                       waits (with the schedulers bfq and mq-deadline)"
                    .to_owned(),
                now: vec![format!("ionice -c 3 -p {owner}")],
                for_good: vec!["IOWeight= or IOReadBandwidthMax= in its unit".to_owned()],
            },
            Remedy::by_hand("another disk for one of them"),
        ],
    };
    Some(finding.about(super::process_at(watch, waits, disk)))
}
