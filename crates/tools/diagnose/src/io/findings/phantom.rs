//! Reads that no program asked for: what the kernel reads ahead of a program that only writes, or
//! that touches a mapping here and there, pages that are read because a part of them is written,
//! members of an array that are read for parity.

use units::ByteSize;

use super::super::tally::{Content, Faults, FileSeen};
use super::super::watch::IoWatch;
use super::subjects;
use findings::words::{percent, plural, some};
use findings::{Finding, Found, Remedy, Severity, Subject};

const PAGE: u64 = 4096;
/// Less is no reason to look at anything.
const READ_MIN: u64 = 1 << 20;
const PARTIAL_MIN: u64 = 16;
/// Fewer touches say nothing of the way.
const TOUCHES_MIN: u64 = 32;
/// Mapped around a touch at most (`fault_around_bytes`).
const AROUND_BYTES: u64 = 64 << 10;
const NOT_AHEAD_OF_MAPPING: &str = "madvise(MADV_RANDOM)";

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let of_files = watch.files.iter().flat_map(|(content, seen)| {
        let found = [
            readahead(watch, *content, seen),
            around(watch, *content, seen),
            partial(watch, *content, seen),
        ];
        found.into_iter().flatten().map(|finding| {
            let readers = seen.by.keys().map(|process| Subject::Process(*process));
            finding.about(subjects::disk(watch, seen.disk).into_iter().chain(readers))
        })
    });
    of_files.chain(arrays(watch)).collect()
}

/// Who changes a file, in words, and how many pages.
fn writers(watch: &IoWatch, seen: &FileSeen) -> (String, u64) {
    let names = seen.changed_by.keys().map(|process| watch.process_label(*process));
    (some(names), seen.changed_by.values().sum())
}

/// Faults of those who change it, or of those who do not; 0 is no mapping.
fn faults(seen: &FileSeen, of_writers: bool) -> Faults {
    let those = seen
        .mapped_by
        .iter()
        .filter(|(process, _)| seen.changed_by.contains_key(process) == of_writers);
    those.fold(Faults::default(), |sum, (_, faults)| Faults {
        count: sum.count + faults.count,
        in_memory: sum.in_memory + faults.in_memory,
        far: sum.far + faults.far,
        back: sum.back + faults.back,
    })
}

/// Whether it is a way through the file: what is read ahead of that is used.
fn goes_through(faults: Faults) -> bool {
    faults.far * 2 < faults.touches()
}

fn readahead(watch: &IoWatch, content: Content, seen: &FileSeen) -> Option<Finding> {
    let (who, changed) = writers(watch, seen);
    let faults = faults(seen, true);
    // A store through a mapping is a touch of its own page, whatever the kernel keeps as one.
    let pages = if faults.count > 0 { changed.min(faults.count) } else { changed };
    let is_used = faults.count > 0 && goes_through(faults);
    let ahead = seen.readahead;
    let is_by_writer = seen
        .by
        .iter()
        .any(|(process, [read, _])| read.bytes > 0 && seen.changed_by.contains_key(process));
    // Who changes all that was read has had use of it.
    let is_unasked = ahead.bytes >= READ_MIN
        && ahead.bytes * 2 >= seen.reads.bytes
        && ahead.bytes >= pages.saturating_mul(PAGE).saturating_mul(4);
    if !is_by_writer || !is_unasked || is_used {
        return None;
    }
    let name = watch.content_name(content);
    let (how, call) = if faults.count > 0 {
        ("through a mapping", NOT_AHEAD_OF_MAPPING)
    } else {
        ("by writing", "posix_fadvise(POSIX_FADV_RANDOM)")
    };
    let mut evidence = vec![
        format!(
            "{} of the {} that were read of it were read ahead (rwbs RA), in {}",
            ByteSize(ahead.bytes),
            ByteSize(seen.reads.bytes),
            plural(usize::try_from(ahead.count).unwrap_or(usize::MAX), "request"),
        ),
        format!("{who} changed {} of it ({pages} pages) {how}", ByteSize(pages * PAGE)),
        format!("{} were written back to it", ByteSize(seen.writes.bytes)),
    ];
    let disk = watch.device_name(seen.disk);
    let ahead_kib = watch.facts.get(&format!("block.{disk}.queue.read_ahead_kb"));
    evidence.extend(ahead_kib.map(|kib| format!("/sys/block/{disk}/queue/read_ahead_kb: {kib}")));
    Some(Finding {
        kind: "io.phantom_readahead",
        severity: Severity::Warning,
        reach: usize::try_from(ahead.count).unwrap_or(usize::MAX),
        what: format!(
            "{} were read ahead from {name} for {who}, which changes only a few pages of it",
            ByteSize(ahead.bytes)
        ),
        evidence,
        cause: "A page that is not in memory is read before a part of it is changed, and the \
                kernel takes those around it along, because most who read one page want the next."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(format!("{call} in the program that changes the file")),
            Remedy::by_hand("write whole pages by O_DIRECT, or by pwrite at multiples of 4096"),
            less_readahead(&disk),
        ],
    })
}

/// What is read around the pages of a mapping that is touched here and there, and not changed.
fn around(watch: &IoWatch, content: Content, seen: &FileSeen) -> Option<Finding> {
    let (ahead, faults) = (seen.readahead, faults(seen, false));
    let touches = faults.touches();
    // Old kernels do not tell of touches of what is in memory: nothing says then what was used.
    let is_random = touches >= TOUCHES_MIN
        && faults.in_memory > 0
        && faults.far * 5 >= touches * 4
        && faults.back * 4 >= touches;
    let used_at_most = touches.saturating_mul(AROUND_BYTES);
    let is_unasked = ahead.bytes >= READ_MIN
        && ahead.bytes * 2 >= seen.reads.bytes
        && seen.reads.bytes >= used_at_most.saturating_mul(2);
    let readers: Vec<u32> = seen
        .mapped_by
        .keys()
        .copied()
        .filter(|process| {
            let has_read = seen.by.get(process).is_some_and(|[read, _]| read.bytes > 0);
            has_read && !seen.changed_by.contains_key(process)
        })
        .collect();
    if readers.is_empty() || !is_random || !is_unasked {
        return None;
    }
    let who = some(readers.iter().map(|process| watch.process_label(*process)));
    let disk = watch.device_name(seen.disk);
    Some(Finding {
        kind: "io.random_mapping",
        severity: Severity::Warning,
        reach: usize::try_from(ahead.count).unwrap_or(usize::MAX),
        what: format!(
            "{} were read ahead from {} for {who}, which touches single pages of a mapping",
            ByteSize(ahead.bytes),
            watch.content_name(content)
        ),
        evidence: vec![
            format!(
                "{} of {touches} touches were more than 64 pages from the one before, {} of them \
                 before it",
                faults.far, faults.back
            ),
            format!(
                "{} were read of it, {} of that ahead (rwbs RA); with 64 KiB around each touch, \
                 which are mapped with it, at most {} were used",
                ByteSize(seen.reads.bytes),
                percent(ahead.bytes, seen.reads.bytes),
                ByteSize(used_at_most),
            ),
        ],
        cause: "A page of a mapping that is not in memory is read with those around it, because \
                most who read one page want the next; who goes here and there does not."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(format!("{NOT_AHEAD_OF_MAPPING} in the program that reads the file")),
            less_readahead(&disk),
        ],
    })
}

fn less_readahead(disk: &str) -> Remedy {
    Remedy {
        what: "less readahead for everything on the disk".to_owned(),
        now: vec![format!("echo 16 > /sys/block/{disk}/queue/read_ahead_kb")],
        for_good: vec![format!(
            "echo 'ACTION==\"add|change\", KERNEL==\"{disk}\", \
             ATTR{{queue/read_ahead_kb}}=\"16\"' > \
             /etc/udev/rules.d/60-readahead-{disk}.rules"
        )],
    }
}

fn partial(watch: &IoWatch, content: Content, seen: &FileSeen) -> Option<Finding> {
    let part = seen.partial_pages;
    if part.count < PARTIAL_MIN {
        return None;
    }
    let (who, _) = writers(watch, seen);
    let is_mapped = faults(seen, true).count > 0;
    let (what, cause, remedy) = if is_mapped {
        (
            "pages are read before they are changed through a mapping",
            "A page of a mapping that is not in memory is read before it can be changed, also by \
             who changes all of it.",
            "write whole pages by pwrite instead of through the mapping, or keep the file in \
             memory (mlock, MAP_POPULATE)",
        )
    } else {
        (
            "pages are read because only a part of each is written",
            "A write that covers a part of a page needs the rest of the page: the kernel reads it \
             first, and the writer waits.",
            "write at multiples of 4096, in multiples of 4096",
        )
    };
    Some(Finding {
        kind: "io.partial_pages",
        severity: Severity::Warning,
        reach: usize::try_from(part.count).unwrap_or(usize::MAX),
        what: format!("{what}: {} of {}", part.count, watch.content_name(content)),
        evidence: vec![
            format!(
                "{} single reads of {} by {who}, each of a page that it changed at once",
                part.count,
                ByteSize(part.bytes / part.count.max(1)),
            ),
            format!(
                "{} of the reads of the file, and {} were written to it",
                percent(part.bytes, seen.reads.bytes),
                ByteSize(seen.writes.bytes)
            ),
        ],
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(remedy)],
    })
}

/// Reads of members of an array that no program reads.
fn arrays(watch: &IoWatch) -> impl Iterator<Item = Found> {
    watch.counters.values().filter_map(|(name, gained)| {
        let fact = |what: &str| watch.facts.get(&format!("block.{name}.{what}"));
        let level = fact("md.level")
            .filter(|level| ["raid4", "raid5", "raid6"].contains(&level.as_str()))?;
        let members = fact("on")?;
        let is_member = |disk: &str| members.split(' ').any(|member| member == disk);
        let of = watch.counters.values().filter(|(disk, _)| is_member(disk));
        let read: u64 = of.map(|(_, gained)| gained.read_bytes).sum();
        let unasked = read.saturating_sub(gained.read_bytes);
        if unasked < READ_MIN || gained.read_bytes * 10 > read {
            return None;
        }
        let action = fact("md.sync_action").map_or("idle", String::as_str);
        let (what, cause) = if action == "idle" {
            (
                "to compute parity",
                "A write that does not cover a whole stripe needs the rest of the stripe, or the \
                 old parity.",
            )
        } else {
            ("by the array itself", "The array compares or rebuilds its disks.")
        };
        let finding = Finding {
            kind: "io.array_reads",
            severity: Severity::Warning,
            reach: usize::try_from(unasked >> 20).unwrap_or(usize::MAX),
            what: format!("{} of the disks of {name} are read {what}", ByteSize(unasked)),
            evidence: vec![
                format!("of {name} ({level}) {} were read meanwhile", ByteSize(gained.read_bytes)),
                format!("and {} written to it", ByteSize(gained.written_bytes)),
                format!("/sys/block/{name}/md/sync_action: {action}"),
            ],
            cause: cause.to_owned(),
            remedies: vec![
                Remedy::by_hand("write whole stripes: chunk size times data disks, and aligned"),
                Remedy {
                    what: "a larger cache of stripes".to_owned(),
                    now: vec![format!("echo 8192 > /sys/block/{name}/md/stripe_cache_size")],
                    for_good: Vec::new(),
                },
            ],
        };
        let disks = members.split(' ').chain([name.as_str()]);
        Some(
            finding.about(disks.map(|disk| Subject::Disk(disk.to_owned())).chain([Subject::Disks])),
        )
    })
}
