//! Processes that are held back because they change more of files than a disk takes.

use host::DeviceNumber;
use units::ByteSize;

use super::super::tally::PauseSeen;
use super::super::watch::IoWatch;
use findings::words::time;
use findings::{Finding, Found, Remedy, Severity};

/// Hundredths of the watch that a process is held back at least.
const HELD: u64 = 20;
/// Fewer pauses are no habit.
const ENOUGH: u64 = 5;
const PAGE: u64 = 4096;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let of = |((process, device), seen): (&(u32, DeviceNumber), &PauseSeen)| {
        let is_held = seen.count >= ENOUGH && watch.is_share(seen.total_ns, HELD);
        let about = super::process_at(watch, *process, *device);
        is_held.then(|| held(watch, *process, *device, seen).about(about))
    };
    watch.pauses.iter().filter_map(of).collect()
}

fn held(watch: &IoWatch, process: u32, device: DeviceNumber, seen: &PauseSeen) -> Finding {
    let (who, disk) = (watch.process_label(process), watch.device_name(device));
    let written = watch.counters.get(&device).map_or(0, |(_, gained)| gained.written_bytes);
    let [dirty, limit] = [seen.dirty, seen.limit].map(|pages| ByteSize(pages.saturating_mul(PAGE)));
    Finding {
        kind: "io.dirty_throttled",
        severity: Severity::Warning,
        reach: usize::try_from(seen.count).unwrap_or(usize::MAX),
        what: format!("{who} is held back: it writes more than {disk} takes"),
        evidence: vec![
            format!(
                "the kernel had it sleep {} times, {} of {:.1} s in all (balance_dirty_pages)",
                seen.count,
                time(seen.total_ns),
                watch.seconds(),
            ),
            format!("{dirty} were changed and not yet written then, and {limit} may be"),
            format!("{disk} was written {}/s meanwhile", ByteSize(watch.per_second(written))),
        ],
        cause: "Written data stays in memory until the disk takes it. When too much waits, the \
                kernel has the writers sleep, so that they become as slow as the disk; the limit \
                is one for all disks, so that writers to fast ones may sleep as well."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("write less, or to a faster disk: nothing else helps for long"),
            Remedy::sysctl(
                "begin to write earlier, so that bursts meet an empty cache",
                "vm.dirty_background_bytes",
                "67108864",
            ),
            Remedy::by_hand("O_DIRECT, or sync_file_range, for what is written and not read again"),
        ],
    }
}
