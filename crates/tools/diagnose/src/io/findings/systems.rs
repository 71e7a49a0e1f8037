//! What file systems do besides: journals, flushes, metadata, discards; and what they leave out.

use blockdev::placement::Filesystem;
use host::DeviceNumber;
use observe::tracepoints::Operation;
use units::ByteSize;

use super::super::tally::{Content, DiskSeen};
use super::super::watch::IoWatch;
use super::discards;
use super::subjects;
use findings::words::{percent, some, time};
use findings::{Finding, Found, Remedy, Severity, Subject};

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    let of_disks = watch.disks.iter().flat_map(|(disk, seen)| {
        let name = watch.device_name(*disk);
        let found = [
            flushes(watch, &name, seen),
            discards::finding(watch, *disk, seen),
            metadata(&name, seen),
        ];
        let places: Vec<Subject> = subjects::systems_on(watch, *disk).map(place).collect();
        let about = subjects::disk_and_users(watch, *disk).into_iter().chain(places);
        found.into_iter().flatten().map(move |finding| finding.about(about.clone()))
    });
    let of_systems = watch.filesystems.values().flat_map(|filesystem| {
        let disk = subjects::disk_of_device(watch, filesystem.device);
        let disk = disk.into_iter().flat_map(|disk| subjects::disk(watch, disk));
        let about = disk.chain([place(filesystem)]);
        let found = [journal(watch, filesystem), barriers(watch, filesystem)];
        found.into_iter().flatten().map(move |finding| finding.about(about.clone()))
    });
    of_disks.chain(of_systems).collect()
}

/// A file system, as what a finding is about.
pub(super) fn place(filesystem: &Filesystem) -> Subject {
    Subject::Filesystem(filesystem.mount_point.display().to_string())
}

fn flushes(watch: &IoWatch, disk: &str, seen: &DiskSeen) -> Option<Finding> {
    const A_SECOND: u64 = 20;
    let of = seen.operations.get(&Operation::Flush)?;
    let typical_ns = of.device.quantile_ns(500);
    let spent_ns = typical_ns.saturating_mul(of.all.count);
    if watch.per_second(of.all.count) < A_SECOND || !watch.is_share(spent_ns, 20) {
        return None;
    }
    let cache = watch.facts.get(&format!("block.{disk}.queue.write_cache"));
    Some(Finding {
        kind: "io.flushes",
        severity: Severity::Warning,
        reach: usize::try_from(of.all.count).unwrap_or(usize::MAX),
        what: format!(
            "{disk} is asked {} times a second to make its cache durable, {} each time",
            watch.per_second(of.all.count),
            time(typical_ns)
        ),
        evidence: vec![
            format!("asked for by: {}", subjects::askers(watch, seen, |part| part.flushes)),
            format!(
                "99 % of the flushes take {}, the longest {}",
                time(of.device.quantile_ns(990)),
                time(of.device.max_ns())
            ),
            format!(
                "/sys/block/{disk}/queue/write_cache: {}",
                cache.map_or("unknown", String::as_str)
            ),
        ],
        cause: "Each fsync, each write that is to be durable at once (O_SYNC), and each commit of \
                a journal ends with a flush of the disk's own cache; what is written meanwhile \
                waits."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(
                "fewer fsyncs and durable writes, or one for several files and records",
            ),
            Remedy::by_hand("disks whose cache survives a power cut: they need no flush"),
        ],
    })
}

fn metadata(disk: &str, seen: &DiskSeen) -> Option<Finding> {
    const ENOUGH: u64 = 500;
    let reads = seen.operations.get(&Operation::Read)?;
    let written = seen.operations.get(&Operation::Write).map_or(0, |writes| writes.all.bytes);
    let is_writing = written > reads.all.bytes;
    if !is_writing || reads.metadata.count < ENOUGH || reads.metadata.count * 2 < reads.all.count {
        return None;
    }
    Some(Finding {
        kind: "io.metadata_reads",
        severity: Severity::Note,
        reach: usize::try_from(reads.metadata.count).unwrap_or(usize::MAX),
        what: format!(
            "{} of the reads of {disk} are the file system's own, while others write",
            percent(reads.metadata.count, reads.all.count)
        ),
        evidence: vec![format!(
            "{} reads of metadata (rwbs M), {}",
            reads.metadata.count,
            ByteSize(reads.metadata.bytes)
        )],
        cause:
            "Who writes to new places needs bitmaps, tables of inodes and trees of extents, and \
                these are not in memory."
                .to_owned(),
        remedies: vec![
            Remedy::by_hand("preallocate files (fallocate), and keep them"),
            Remedy::by_hand("mkfs.ext4 -E lazy_itable_init=0, so that nothing is left to be done"),
        ],
    })
}

fn journal(watch: &IoWatch, filesystem: &Filesystem) -> Option<Finding> {
    const A_SECOND: u64 = 5;
    let device = filesystem.device;
    let bytes = watch.files.get(&Content::Journal(device)).map_or(0, |seen| seen.writes.bytes);
    let of = watch.files.iter().filter(|(content, _)| content.filesystem() == Some(device));
    let written: u64 = of.map(|(_, seen)| seen.writes.bytes).sum();
    let commits = watch.commits.get(&device).copied().unwrap_or_default();
    let is_much = bytes >= 1 << 20 && bytes * 4 >= written;
    // All that is written goes there first, however rarely it commits.
    let has_data = filesystem.options.split(',').any(|option| option == "data=journal");
    if !is_much || (watch.per_second(commits.count) < A_SECOND && !has_data) {
        return None;
    }
    let (cause, remedies) = if has_data { of_data() } else { of_commits(filesystem) };
    let who = changers(watch, device);
    Some(Finding {
        kind: "io.journal",
        severity: Severity::Warning,
        reach: usize::try_from(commits.count).unwrap_or(usize::MAX),
        what: format!(
            "{} of what is written to {} goes to its journal",
            percent(bytes, written),
            filesystem.mount_point.display()
        ),
        evidence: vec![
            format!(
                "{} commits, {} a second, {} blocks each in the mean",
                commits.count,
                watch.per_second(commits.count),
                commits.bytes / commits.count.max(1)
            ),
            format!("files are changed by: {who}"),
            format!("mounted with: {}", filesystem.options),
        ],
        cause,
        remedies,
    })
}

/// Of a journal that commits often.
fn of_commits(filesystem: &Filesystem) -> (String, Vec<Remedy>) {
    let cause = "Each fsync of a file that has grown, or whose times have changed, commits the \
                 journal: a block for each table that was touched, and one to end it.";
    let lazily = Remedy {
        what: "keep times in memory".to_owned(),
        now: vec![format!("mount -o remount,lazytime {}", filesystem.mount_point.display())],
        for_good: Vec::new(),
    };
    let remedies = vec![
        Remedy::by_hand("preallocate, and end with fdatasync instead of fsync"),
        lazily,
        Remedy::by_hand("a journal on another disk (tune2fs -J device=)"),
    ];
    (cause.to_owned(), remedies)
}

/// Of one that has the data of files, too.
fn of_data() -> (String, Vec<Remedy>) {
    let cause = "The file system is mounted with data=journal: the data of files are written \
                 twice, to the journal first and then to their place.";
    let remedies = vec![
        Remedy::by_hand(
            "data=ordered, which is usual: unmount the file system, take data=journal out of \
             /etc/fstab (and tune2fs -o ^journal_data, where it is kept in the file system), and \
             mount it again",
        ),
        Remedy::by_hand("a journal on another disk (tune2fs -J device=)"),
    ];
    (cause.to_owned(), remedies)
}

/// Who changes files of a file system, the most first.
fn changers(watch: &IoWatch, device: DeviceNumber) -> String {
    let mut by = std::collections::BTreeMap::<u32, u64>::new();
    for (content, seen) in &watch.files {
        if matches!(content, Content::File(file) if file.device == device) {
            for (process, pages) in &seen.changed_by {
                *by.entry(*process).or_default() += pages;
            }
        }
    }
    let mut by: Vec<(u64, u32)> = by.into_iter().map(|(process, pages)| (pages, process)).collect();
    by.sort_by(|one, other| other.cmp(one));
    some(by.into_iter().map(|(_, process)| watch.process_label(process)))
}

/// A file system that never has the disk's cache made durable.
fn barriers(watch: &IoWatch, filesystem: &Filesystem) -> Option<Finding> {
    let options: Vec<&str> = filesystem.options.split(',').collect();
    let off = options.iter().find(|option| ["nobarrier", "barrier=0"].contains(option))?;
    let disk = watch.device_name(filesystem.device);
    let caches = watch.facts.iter().filter(|(name, value)| {
        name.starts_with("block.") && name.ends_with(".queue.write_cache") && *value == "write back"
    });
    let disks: Vec<String> = caches
        .filter_map(|(name, _)| Some(name.split('.').nth(1)?.to_owned()))
        .filter(|name| disk.starts_with(name.as_str()))
        .collect();
    if disks.is_empty() {
        return None;
    }
    let place = filesystem.mount_point.display();
    Some(Finding {
        kind: "io.no_barriers",
        severity: Severity::Problem,
        reach: 1,
        what: format!("what is fsynced on {place} is lost in a power cut"),
        evidence: vec![
            format!("{place} is mounted with {off}"),
            format!("/sys/block/{}/queue/write_cache: write back", disks.join(", ")),
        ],
        cause: "The disk says that it keeps writes in a cache, and the file system never has it \
                made durable."
            .to_owned(),
        remedies: vec![Remedy {
            what: "barriers".to_owned(),
            now: vec![format!("mount -o remount,barrier {place}")],
            for_good: vec![format!("take {off} out of /etc/fstab")],
        }],
    })
}
