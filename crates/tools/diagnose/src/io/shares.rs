//! Who has the disks, and who waits for them.

use host::DeviceNumber;

use super::tally::{DiskSeen, PartOfDisk};
use super::watch::IoWatch;
use findings::words::{percent, some, time};
use findings::{Share, Subject};

/// Names that are shown.
const SHOWN: usize = 3;
/// Hundredths of the watch in which a disk has something to do, and that a process waits, at least.
const BUSY: u64 = 10;
/// Hundredths of a disk's time: less is not worth a name.
const PART: u64 = 5;

/// A line for each disk that is busy, and one for those that wait most.
pub(super) fn of_disks(watch: &IoWatch) -> Vec<Share> {
    let ns = u64::try_from(watch.ns).unwrap_or(0).max(1);
    let mut shares = Vec::new();
    for (disk, seen) in &watch.disks {
        let busy_ns = watch.busy_ns(*disk);
        if busy_ns.saturating_mul(100) >= ns.saturating_mul(BUSY) {
            let what = format!(
                "{} is busy {}: {}",
                watch.device_name(*disk),
                percent(busy_ns.min(ns), ns),
                some(holders(watch, seen).into_iter())
            );
            let about = [Subject::Disk(watch.device_name(*disk))].into();
            shares.push(Share { of: "disks", what, finding: None, about });
            shares.extend(waiting(watch, *disk, seen, ns));
        }
    }
    shares
}

/// Who has most of a disk's time.
fn holders(watch: &IoWatch, seen: &DiskSeen) -> Vec<String> {
    let is_enough = |part: &PartOfDisk| part.device_ns.saturating_mul(100) >= seen.device_ns * PART;
    let mut parts: Vec<_> = seen.by.iter().filter(|(_, part)| is_enough(part)).collect();
    parts.sort_by_key(|(_, part)| core::cmp::Reverse(part.device_ns));
    let name = |(process, part): &(&u32, &PartOfDisk)| {
        let share = percent(part.device_ns, seen.device_ns);
        format!("{} has {share}", watch.process_label(**process))
    };
    parts.iter().take(SHOWN).map(name).collect()
}

/// Who waits longest for a disk.
fn waiting(watch: &IoWatch, disk: DeviceNumber, seen: &DiskSeen, ns: u64) -> Option<Share> {
    let is_kernel = |process: u32| watch.processes.get(&process).is_some_and(|seen| seen.is_kernel);
    // Of several requests at the same time each counts: their sum is no wait.
    let mean = |part: &PartOfDisk| part.total_ns / part.all.count.max(1);
    let waits = seen.by.iter().filter(|(process, part)| {
        !is_kernel(**process)
            && part.total_ns.saturating_mul(100) >= ns.saturating_mul(BUSY)
            && part.total_ns <= ns
    });
    let (process, part) = waits.max_by_key(|(_, part)| part.total_ns)?;
    let what = format!(
        "{} waited {} for {}, {} for each request",
        watch.process_label(*process),
        time(part.total_ns),
        watch.device_name(disk),
        time(mean(part)),
    );
    let about = [Subject::Disk(watch.device_name(disk)), Subject::Process(*process)].into();
    Some(Share { of: "disk waits", what, finding: None, about })
}
