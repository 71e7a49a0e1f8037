//! Much more is read from disks than a program asks for.

use host::DeviceNumber;
use observe::io::ProcessCounters;
use units::ByteSize;

use super::super::tally::{Content, FileSeen};
use super::super::watch::IoWatch;
use super::subjects;
use findings::words::percent;
use findings::{Finding, Found, Remedy, Severity};

/// Less is no reason to look at anything.
const READ_MIN: u64 = 16 << 20;
/// So many times what it asked for.
const FACTOR: u64 = 2;

pub(super) fn findings(watch: &IoWatch) -> Vec<Found> {
    watch
        .process_counters
        .iter()
        .filter_map(|(process, gained)| of(watch, *process, gained))
        .collect()
}

/// What a process asked for counts all that it read, of whatever was in memory, of pipes and
/// sockets, too: it may only be too much, so that the finding may only be missed.
fn of(watch: &IoWatch, process: u32, gained: &ProcessCounters) -> Option<Found> {
    let is_more =
        gained.read_bytes >= READ_MIN && gained.read_bytes / FACTOR >= gained.asked_bytes.max(1);
    let seen = watch.processes.get(&process)?;
    // What is touched through a mapping is not asked for by a call.
    let maps = |file: &FileSeen| file.mapped_by.contains_key(&process);
    let reads = |file: &&FileSeen| file.by.get(&process).is_some_and(|[read, _]| read.bytes > 0);
    let is_mapped = watch.files.values().filter(reads).any(maps);
    let is_ahead = seen.readahead.bytes * 2 >= seen.reads.bytes && seen.readahead.bytes > 0;
    if !is_more || !is_ahead || is_mapped {
        return None;
    }
    let disk = most_read(watch, process)?;
    let name = watch.device_name(disk);
    let kib = watch.facts.get(&format!("block.{name}.queue.read_ahead_kb"));
    let who = watch.process_label(process);
    let mut evidence = vec![
        format!(
            "/proc/{process}/io: it asked for {} (rchar), and {} were read for it (read_bytes)",
            ByteSize(gained.asked_bytes),
            ByteSize(gained.read_bytes),
        ),
        format!(
            "{} of the requests' bytes were read ahead (rwbs RA)",
            percent(seen.readahead.bytes, seen.reads.bytes)
        ),
    ];
    evidence.extend(kib.map(|kib| format!("/sys/block/{name}/queue/read_ahead_kb: {kib}")));
    let finding = Finding {
        kind: "io.readahead",
        severity: Severity::Warning,
        reach: usize::try_from(seen.readahead.count).unwrap_or(usize::MAX),
        what: format!(
            "{} were read from {name} for {who}, which asked for {}",
            ByteSize(gained.read_bytes),
            ByteSize(gained.asked_bytes),
        ),
        evidence,
        cause: "The kernel reads ahead of a program that seems to go through a file. This one \
                stops, or goes elsewhere, before it comes to what was read."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand(
                "posix_fadvise(POSIX_FADV_RANDOM) in the program, where it reads parts of files",
            ),
            Remedy {
                what: "less readahead for everything on the disk".to_owned(),
                now: vec![format!("echo 128 > /sys/block/{name}/queue/read_ahead_kb")],
                for_good: Vec::new(),
            },
        ],
    };
    Some(finding.about(subjects::process_at(watch, process, disk)))
}

/// The disk of which most was read for a process.
fn most_read(watch: &IoWatch, process: u32) -> Option<DeviceNumber> {
    let files = watch.files.iter().filter(|(content, _)| matches!(content, Content::File(_)));
    let read = |file: &FileSeen| file.by.get(&process).map_or(0, |[read, _]| read.bytes);
    let most = files.max_by_key(|(_, file)| read(file)).filter(|(_, file)| read(file) > 0);
    most.map(|(_, file)| file.disk)
}
