//! What was seen of disks as JSON.

use core::cmp::Reverse;

use diagnose::io::{
    Amount, DiskCounters, DiskLimit, DiskSeen, FileSeen, GroupSeen, IoWatch, Operation,
    OperationSeen, ProcessSeen, Tracing, Unit, Wait,
};
use findings::Diagnosis;
use page::safe::json_pretty;
use serde::Serialize;
use units::Histogram;

use super::name;
use crate::diagnosis::DiagnosisJson;

#[derive(Serialize)]
struct IoJson<'a> {
    #[serde(flatten)]
    diagnosis: DiagnosisJson<'a>,
    duration_ns: i64,
    tracing: TracingJson<'a>,
    disks: Vec<DiskJson>,
    processes: Vec<ProcessJson<'a>>,
    files: Vec<FileJson>,
    cgroups: Vec<GroupJson<'a>>,
    counters: Vec<CountersJson<'a>>,
    process_counters: Vec<ProcessCountersJson<'a>>,
}

#[derive(Serialize)]
struct TracingJson<'a> {
    is_on: bool,
    needs: Option<&'a str>,
    lost_requests: Option<u64>,
    lost_pages: Option<u64>,
    unmatched_requests: u64,
    unplaced_requests: u64,
    own_requests: u64,
}

#[derive(Serialize)]
struct DiskJson {
    name: String,
    device: String,
    in_flight_max: u32,
    in_flight_ns: u64,
    operations: Vec<OperationJson>,
    places: Vec<PlaceJson>,
}

#[derive(Serialize)]
struct OperationJson {
    operation: &'static str,
    count: u64,
    bytes: u64,
    sequential: u64,
    readahead: Amount,
    metadata: Amount,
    queue: TimesJson,
    device: TimesJson,
    total: TimesJson,
    sizes: Vec<BucketJson>,
}

#[derive(Serialize)]
struct TimesJson {
    count: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    buckets: Vec<BucketJson>,
}

#[derive(Serialize)]
struct BucketJson {
    from: u64,
    count: u64,
}

#[derive(Serialize)]
struct PlaceJson {
    after_ns: u64,
    offset_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    process: u32,
    name: &'a str,
    is_kernel: bool,
    reads: Amount,
    readahead: Amount,
    writes: Amount,
    written_later: Amount,
    others: u64,
    total: TimesJson,
}

#[derive(Serialize)]
struct FileJson {
    name: String,
    reads: Amount,
    readahead: Amount,
    partial_pages: Amount,
    writes: Amount,
    total: TimesJson,
    by: Vec<ByJson>,
}

#[derive(Serialize)]
struct ByJson {
    process: u32,
    name: String,
    read_bytes: u64,
    written_bytes: u64,
    changed_pages: u64,
    mapped_faults: u64,
    /// With those of pages that were in memory.
    mapped_touches: u64,
}

/// A group of processes with limits, of which anything waited.
#[derive(Serialize)]
struct GroupJson<'a> {
    name: &'a str,
    standing_ns: u64,
    stalled_us: Option<u64>,
    limits: Vec<LimitJson<'a>>,
    waits: Vec<WaitJson<'a>>,
}

#[derive(Serialize)]
struct LimitJson<'a> {
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
struct WaitJson<'a> {
    process: u32,
    name: &'a str,
    waited_ns: u64,
}

#[derive(Serialize)]
struct CountersJson<'a> {
    name: &'a str,
    device: String,
    reads: u64,
    read_bytes: u64,
    read_ms: u64,
    writes: u64,
    written_bytes: u64,
    write_ms: u64,
    discards: u64,
    discarded_bytes: u64,
    flushes: u64,
    flush_ms: u64,
    busy_ms: u64,
    weighted_ms: u64,
}

#[derive(Serialize)]
struct ProcessCountersJson<'a> {
    process: u32,
    name: &'a str,
    read_bytes: u64,
    changed_bytes: u64,
    cancelled_bytes: u64,
}

/// Everything, with the findings.
pub fn io_json(watch: &IoWatch, report: &Diagnosis) -> String {
    let mut files: Vec<_> = watch.files.iter().collect();
    files.sort_by_key(|(_, seen)| Reverse(seen.reads.bytes + seen.writes.bytes));
    let counters = watch.counters.iter();
    let process_counters =
        watch.process_counters.iter().map(|(process, seen)| ProcessCountersJson {
            process: *process,
            name: &seen.name,
            read_bytes: seen.read_bytes,
            changed_bytes: seen.written_bytes,
            cancelled_bytes: seen.cancelled_bytes,
        });
    json_pretty(&IoJson {
        diagnosis: DiagnosisJson::of(report),
        duration_ns: watch.ns,
        tracing: tracing(watch),
        disks: watch
            .disks
            .iter()
            .map(|(disk, seen)| DiskJson {
                name: watch.device_name(*disk),
                device: disk.to_string(),
                ..disk_json(seen)
            })
            .collect(),
        processes: watch.processes.iter().map(|(number, seen)| process(*number, seen)).collect(),
        files: files
            .into_iter()
            .map(|(content, seen)| file(watch, watch.content_name(*content), seen))
            .collect(),
        cgroups: watch.groups.iter().map(|seen| group(watch, seen)).collect(),
        counters: counters
            .map(|(device, (name, of))| counters_json(name, device.to_string(), of))
            .collect(),
        process_counters: process_counters.collect(),
    })
}

fn group<'a>(watch: &'a IoWatch, seen: &'a GroupSeen) -> GroupJson<'a> {
    let limit = |limit: &'a DiskLimit| LimitJson {
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
    let wait = |(process, wait): (&u32, &'a Wait)| WaitJson {
        process: *process,
        name: watch.processes.get(process).map_or("", |seen| &seen.name),
        waited_ns: wait.ns,
    };
    GroupJson {
        name: &seen.limited.name,
        standing_ns: seen.standing_ns,
        stalled_us: seen.stalled_us,
        limits: seen.limited.limits.iter().map(limit).collect(),
        waits: seen.waits.iter().map(wait).collect(),
    }
}

fn tracing(watch: &IoWatch) -> TracingJson<'_> {
    let (needs, lost_requests, lost_pages) = match &watch.tracing {
        Tracing::Seen { lost_requests, lost_pages } => {
            (None, Some(*lost_requests), Some(*lost_pages))
        }
        Tracing::Refused(needs) => (Some(needs.as_str()), None, None),
    };
    TracingJson {
        is_on: needs.is_none(),
        needs,
        lost_requests,
        lost_pages,
        unmatched_requests: watch.unmatched,
        unplaced_requests: watch.unplaced,
        own_requests: watch.own.count,
    }
}

fn times(of: &Histogram) -> TimesJson {
    let bucket = |(from, count)| BucketJson { from, count };
    TimesJson {
        count: of.count(),
        p50_ns: of.quantile_ns(500),
        p90_ns: of.quantile_ns(900),
        p99_ns: of.quantile_ns(990),
        p999_ns: of.quantile_ns(999),
        max_ns: of.max_ns(),
        buckets: of.doublings().into_iter().map(bucket).collect(),
    }
}

fn disk_json(seen: &DiskSeen) -> DiskJson {
    let places = &seen.places;
    let place = |((column, row), [read, written]): (&(u64, u64), &[u64; 2])| PlaceJson {
        after_ns: column * places.column_ns,
        offset_bytes: row * places.row_bytes,
        read_bytes: *read,
        written_bytes: *written,
    };
    DiskJson {
        name: String::new(),
        device: String::new(),
        in_flight_max: seen.under_way_max,
        in_flight_ns: seen.device_ns,
        operations: seen.operations.iter().map(|(kind, of)| operation(*kind, of)).collect(),
        places: places.cells.iter().map(place).collect(),
    }
}

fn operation(kind: Operation, seen: &OperationSeen) -> OperationJson {
    let size = |(log, count): (&u32, &u64)| BucketJson { from: 1 << log, count: *count };
    OperationJson {
        operation: name(kind),
        count: seen.all.count,
        bytes: seen.all.bytes,
        sequential: seen.sequential,
        readahead: seen.readahead,
        metadata: seen.metadata,
        queue: times(&seen.queue),
        device: times(&seen.device),
        total: times(&seen.total),
        sizes: seen.sizes.iter().map(size).collect(),
    }
}

fn process(number: u32, seen: &ProcessSeen) -> ProcessJson<'_> {
    ProcessJson {
        process: number,
        name: &seen.name,
        is_kernel: seen.is_kernel,
        reads: seen.reads,
        readahead: seen.readahead,
        writes: seen.writes,
        written_later: seen.later,
        others: seen.others,
        total: times(&seen.total),
    }
}

fn file(watch: &IoWatch, name: String, seen: &FileSeen) -> FileJson {
    let known = seen.by.keys().chain(seen.changed_by.keys()).chain(seen.mapped_by.keys());
    let mut processes: Vec<u32> = known.copied().collect();
    processes.sort_unstable();
    processes.dedup();
    let by = processes.into_iter().map(|process| {
        let [read, written] = seen.by.get(&process).copied().unwrap_or_default();
        ByJson {
            process,
            name: watch.processes.get(&process).map(|seen| seen.name.clone()).unwrap_or_default(),
            read_bytes: read.bytes,
            written_bytes: written.bytes,
            changed_pages: seen.changed_by.get(&process).copied().unwrap_or(0),
            mapped_faults: seen.mapped_by.get(&process).map_or(0, |faults| faults.count),
            mapped_touches: seen.mapped_by.get(&process).map_or(0, |faults| faults.touches()),
        }
    });
    FileJson {
        name,
        reads: seen.reads,
        readahead: seen.readahead,
        partial_pages: seen.partial_pages,
        writes: seen.writes,
        total: times(&seen.total),
        by: by.collect(),
    }
}

fn counters_json<'a>(name: &'a str, device: String, of: &DiskCounters) -> CountersJson<'a> {
    CountersJson {
        name,
        device,
        reads: of.reads,
        read_bytes: of.read_bytes,
        read_ms: of.read_ms,
        writes: of.writes,
        written_bytes: of.written_bytes,
        write_ms: of.write_ms,
        discards: of.discards,
        discarded_bytes: of.discarded_bytes,
        flushes: of.flushes,
        flush_ms: of.flush_ms,
        busy_ms: of.busy_ms,
        weighted_ms: of.weighted_ms,
    }
}
