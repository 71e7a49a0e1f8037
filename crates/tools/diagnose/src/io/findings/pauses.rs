//! Processes that are held back because they change more of files than a disk takes.

use host::DeviceNumber;
use units::ByteSize;

use super::super::tally::PauseSeen;
use super::super::watch::IoWatch;
use super::subjects;
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
        let about = subjects::process_at(watch, *process, *device);
        is_held.then(|| held(watch, *process, *device, seen).about(about))
    };
    watch.pauses.iter().filter_map(of).collect()
}

fn held(watch: &IoWatch, process: u32, device: DeviceNumber, seen: &PauseSeen) -> Finding {
    let (who, disk) = (watch.process_label(process), watch.device_name(device));
    let written = watch.counters.get(&device).map_or(0, |(_, gained)| gained.written_bytes);
    let why = Why::of(watch, &disk, seen);
    let [dirty, limit] = [seen.dirty, seen.limit].map(|pages| ByteSize(pages.saturating_mul(PAGE)));
    let mut evidence = vec![
        format!(
            "the kernel had it sleep {} times, {} of {:.1} s in all (balance_dirty_pages)",
            seen.count,
            time(seen.total_ns),
            watch.seconds(),
        ),
        format!("{dirty} were changed and not yet written on all disks then, and {limit} may be"),
        format!("{disk} was written {}/s meanwhile", ByteSize(watch.per_second(written))),
    ];
    let own = ["max_ratio", "strict_limit"].map(|name| {
        let value = watch.facts.get(&format!("block.{disk}.writeback.{name}"))?;
        Some(format!("/sys/block/{disk}/bdi/{name}: {value}"))
    });
    evidence.extend(own.into_iter().flatten().filter(|_| why != Why::All));
    Finding {
        kind: "io.dirty_throttled",
        severity: Severity::Warning,
        reach: usize::try_from(seen.count).unwrap_or(usize::MAX),
        what: format!("{who} is held back: it writes more than {disk} takes"),
        evidence,
        cause: why.cause().to_owned(),
        remedies: why.remedies(&disk),
    }
}

/// Which limit of changed data was met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// That of all disks.
    All,
    /// That of this disk.
    Disk,
    /// That of a group of processes.
    Group,
}

impl Why {
    /// Writers sleep for the limit of all disks from the middle between that and where the kernel
    /// begins to write on, which is half of it at least (`dirty_freerun_ceiling`). Far below, a
    /// disk holds its writers back only if it is told to be strict, and else a group does.
    fn of(watch: &IoWatch, disk: &str, seen: &PauseSeen) -> Self {
        let strict = watch.facts.get(&format!("block.{disk}.writeback.strict_limit"));
        if seen.dirty.saturating_mul(2) >= seen.limit {
            Self::All
        } else if strict.is_some_and(|strict| strict == "1") {
            Self::Disk
        } else {
            Self::Group
        }
    }

    fn cause(self) -> &'static str {
        match self {
            Self::All => {
                "Written data stays in memory until the disk takes it. When too much waits, the \
                 kernel has the writers sleep, so that they become as slow as the disk; the limit \
                 is one for all disks, so that writers to fast ones may sleep as well."
            }
            Self::Disk => {
                "Written data stays in memory until the disk takes it. This disk has a limit of \
                 its own for that, and is strict about it: its writers sleep as soon as so much \
                 waits for it, far below the limit of the machine."
            }
            Self::Group => {
                "Written data stays in memory until the disk takes it. The limit of the machine is \
                 far away: the group of the process has memory for less (a share of its \
                 memory.max), and its writers sleep when that is full."
            }
        }
    }

    fn remedies(self, disk: &str) -> Vec<Remedy> {
        let less = Remedy::by_hand("write less, or to a faster disk: nothing else helps for long");
        match self {
            Self::All => vec![
                less,
                Remedy::sysctl(
                    "begin to write earlier, so that bursts meet an empty cache",
                    "vm.dirty_background_bytes",
                    "67108864",
                ),
                Remedy::by_hand(
                    "O_DIRECT, or sync_file_range, for what is written and not read again",
                ),
            ],
            Self::Disk => vec![
                Remedy {
                    what: "a larger limit for the disk, where bursts are to go to memory: who set \
                           it meant to keep them small"
                        .to_owned(),
                    now: vec![
                        format!("echo 0 > /sys/block/{disk}/bdi/strict_limit"),
                        format!("echo 100 > /sys/block/{disk}/bdi/max_ratio"),
                    ],
                    for_good: Vec::new(),
                },
                less,
            ],
            Self::Group => vec![
                Remedy::by_hand("more memory for its group (MemoryMax=, the container's limit)"),
                less,
            ],
        }
    }
}
