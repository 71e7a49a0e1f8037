//! What was seen of disks as JSON.

use core::cmp::Reverse;

use diagnose::io::{
    Amount, Content, DeviceNumber, DiskCounters, DiskLimit, DiskSeen, FileSeen, GroupSeen, IoWatch,
    ProcessCounters, ProcessSeen, Tracing, Unit, Wait,
};
use findings::Diagnosis;
use page::safe::json_pretty;
use serde::Serialize;

use crate::diagnosis::Explained;

/// Of the watch what is shown: what is known of a device, process or file, and its name.
#[derive(Serialize)]
struct Watched<'a> {
    #[serde(flatten)]
    diagnosis: Explained<'a>,
    duration_ns: i64,
    tracing: Traced<'a>,
    disks: Vec<OfDevice<'a, DiskSeen>>,
    processes: Vec<OfProcess<'a, ProcessSeen>>,
    files: Vec<File<'a>>,
    cgroups: Vec<Group<'a>>,
    counters: Vec<OfDevice<'a, DiskCounters>>,
    process_counters: Vec<OfProcess<'a, ProcessCounters>>,
}

/// How completely requests were seen; what is not known is null.
#[derive(Serialize)]
struct Traced<'a> {
    is_on: bool,
    needs: Option<&'a str>,
    lost_requests: Option<u64>,
    lost_pages: Option<u64>,
    unmatched_requests: u64,
    unplaced_requests: u64,
    own_requests: u64,
}

#[derive(Serialize)]
struct OfDevice<'a, T> {
    name: String,
    device: String,
    #[serde(flatten)]
    seen: &'a T,
}

#[derive(Serialize)]
struct OfProcess<'a, T> {
    process: u32,
    #[serde(flatten)]
    seen: &'a T,
}

#[derive(Serialize)]
struct File<'a> {
    name: String,
    #[serde(flatten)]
    seen: &'a FileSeen,
    by: Vec<By<'a>>,
}

/// What one process did to a file.
#[derive(Serialize)]
struct By<'a> {
    process: u32,
    name: &'a str,
    read_bytes: u64,
    written_bytes: u64,
    changed_pages: u64,
    mapped_faults: u64,
    /// With those of pages that were in memory.
    mapped_touches: u64,
}

/// A group of processes with limits, of which anything waited.
#[derive(Serialize)]
struct Group<'a> {
    #[serde(flatten)]
    seen: &'a GroupSeen,
    limits: Vec<Limit<'a>>,
    waits: Vec<Waiter<'a>>,
}

/// A limit, and what was seen of the group at its disk.
#[derive(Serialize)]
struct Limit<'a> {
    disk: String,
    operation: &'static str,
    unit: &'static str,
    per_second: u64,
    /// What was moved of that while anything waited.
    moved: u64,
    file: &'a str,
    held_back: Amount,
}

#[derive(Serialize)]
struct Waiter<'a> {
    process: u32,
    name: &'a str,
    waited_ns: u64,
}

/// Everything, with the findings.
pub fn io_json(watch: &IoWatch, report: &Diagnosis) -> String {
    let mut files: Vec<_> = watch.files.iter().collect();
    files.sort_by_key(|(_, seen)| Reverse(seen.reads.bytes + seen.writes.bytes));
    let (disks, counters) = (watch.disks.iter(), watch.counters.iter());
    json_pretty(&Watched {
        diagnosis: Explained::of(report),
        duration_ns: watch.ns,
        tracing: tracing(watch),
        disks: disks.map(|(disk, seen)| device(watch.device_name(*disk), *disk, seen)).collect(),
        processes: watch.processes.iter().map(process).collect(),
        files: files.into_iter().map(|seen| file(watch, seen)).collect(),
        cgroups: watch.groups.iter().map(|seen| group(watch, seen)).collect(),
        counters: counters.map(|(disk, (name, of))| device(name.clone(), *disk, of)).collect(),
        process_counters: watch.process_counters.iter().map(process).collect(),
    })
}

fn device<T>(name: String, device: DeviceNumber, seen: &T) -> OfDevice<'_, T> {
    OfDevice { name, device: device.to_string(), seen }
}

fn process<'a, T>((process, seen): (&u32, &'a T)) -> OfProcess<'a, T> {
    OfProcess { process: *process, seen }
}

fn group<'a>(watch: &'a IoWatch, seen: &'a GroupSeen) -> Group<'a> {
    let limit = |limit: &'a DiskLimit| Limit {
        disk: watch.device_name(limit.device),
        operation: if limit.is_write { "write" } else { "read" },
        unit: match limit.unit {
            Unit::Bytes => "bytes",
            Unit::Requests => "requests",
        },
        per_second: limit.per_second,
        moved: seen.moved_of(limit),
        file: limit.file,
        held_back: seen.held_of(limit),
    };
    let wait = |(process, wait): (&u32, &'a Wait)| Waiter {
        process: *process,
        name: name_of(watch, *process),
        waited_ns: wait.ns,
    };
    let limits = seen.limited.limits.iter().map(limit).collect();
    Group { seen, limits, waits: seen.waits.iter().map(wait).collect() }
}

/// Empty of a process that is not known.
fn name_of(watch: &IoWatch, process: u32) -> &str {
    watch.processes.get(&process).map_or("", |seen| &seen.name)
}

fn tracing(watch: &IoWatch) -> Traced<'_> {
    let (needs, lost_requests, lost_pages) = match &watch.tracing {
        Tracing::Seen { lost_requests, lost_pages } => {
            (None, Some(*lost_requests), Some(*lost_pages))
        }
        Tracing::Refused(needs) => (Some(needs.as_str()), None, None),
    };
    Traced {
        is_on: needs.is_none(),
        needs,
        lost_requests,
        lost_pages,
        unmatched_requests: watch.unmatched,
        unplaced_requests: watch.unplaced,
        own_requests: watch.own.count,
    }
}

fn file<'a>(watch: &'a IoWatch, (content, seen): (&Content, &'a FileSeen)) -> File<'a> {
    let known = seen.by.keys().chain(seen.changed_by.keys()).chain(seen.mapped_by.keys());
    let mut processes: Vec<u32> = known.copied().collect();
    processes.sort_unstable();
    processes.dedup();
    let by = processes.into_iter().map(|process| {
        let [read, written] = seen.by.get(&process).copied().unwrap_or_default();
        let faults = seen.mapped_by.get(&process).copied().unwrap_or_default();
        By {
            process,
            name: name_of(watch, process),
            read_bytes: read.bytes,
            written_bytes: written.bytes,
            changed_pages: seen.changed_by.get(&process).copied().unwrap_or(0),
            mapped_faults: faults.count,
            mapped_touches: faults.touches(),
        }
    });
    File { name: watch.content_name(*content), seen, by: by.collect() }
}
