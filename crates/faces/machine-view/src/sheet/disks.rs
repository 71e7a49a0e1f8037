//! Who reads and writes, what, and on which disk.

use diagnose::io::{FileSeen, IoWatch, Operation, ProcessSeen, Tracing};

use super::{Cell, Sheet, SheetColumn, SheetLine};
use crate::io::most_of;

/// By what requests are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskGrouping {
    /// Whom they are made for.
    Process,
    /// What lies there.
    File,
    /// Where they go.
    Device,
}

/// Lines of requests as a watch saw them; rates are those of the watch.
pub fn disks_sheet(watch: &IoWatch, grouping: DiskGrouping) -> Sheet {
    let (columns, mut lines) = match (grouping, &watch.tracing) {
        (DiskGrouping::Process, Tracing::Seen { .. }) => processes(watch),
        (DiskGrouping::Process, Tracing::Refused(_)) => process_counters(watch),
        (DiskGrouping::File, _) => files(watch),
        (DiskGrouping::Device, _) => devices(watch),
    };
    lines.sort_by_key(|(weight, _)| core::cmp::Reverse(*weight));
    let lines = lines.into_iter().map(|(_, cells)| SheetLine { cells, query: None }).collect();
    let mut notes = Vec::new();
    match &watch.tracing {
        Tracing::Refused(needs) => notes.push(format!("single requests are not seen: {needs}")),
        Tracing::Seen { lost_requests: lost @ 1.., .. } => {
            notes.push(format!("{lost} records did not come: there was more than is shown"));
        }
        Tracing::Seen { .. } => {}
    }
    if watch.unseen_processes > 0 && matches!(watch.tracing, Tracing::Refused(_)) {
        let hidden = match watch.unseen_processes {
            1 => "another process".to_owned(),
            hidden => format!("{hidden} other processes"),
        };
        notes.push(format!(
            "not seen: {hidden}; CAP_SYS_PTRACE, which root has outside of a container"
        ));
    }
    Sheet { columns, lines, notes, ..Sheet::default() }
}

type Weighed = (Vec<SheetColumn>, Vec<(u64, Vec<Cell>)>);

fn rate(watch: &IoWatch, bytes: u64) -> Cell {
    Cell::BytesPerSecond(watch.per_second(bytes))
}

fn processes(watch: &IoWatch) -> Weighed {
    let columns = vec![
        SheetColumn::words("process", "PROCESS", 16, 0),
        SheetColumn::number("read_bytes_per_s", "READ", 0),
        SheetColumn::number("written_bytes_per_s", "WRITTEN", 0),
        SheetColumn::number("written_later_bytes_per_s", "WRITTEN LATER", 0),
        SheetColumn::number("reads_per_s", "READS", 3),
        SheetColumn::number("writes_per_s", "WRITES", 3),
        SheetColumn::number("latency_p50_ns", "50%", 2),
        SheetColumn::number("latency_p99_ns", "99%", 1),
    ];
    let line = |(process, seen): (&u32, &ProcessSeen)| {
        let weight = seen.reads.bytes + seen.writes.bytes + seen.later.bytes;
        let cells = vec![
            Cell::Text(if *process == 0 {
                seen.name.clone()
            } else {
                watch.process_label(*process)
            }),
            rate(watch, seen.reads.bytes),
            rate(watch, seen.writes.bytes),
            rate(watch, seen.later.bytes),
            Cell::PerSecond(watch.per_second(seen.reads.count)),
            Cell::PerSecond(watch.per_second(seen.writes.count)),
            Cell::Nanos(seen.total.quantile_ns(500)),
            Cell::Nanos(seen.total.quantile_ns(990)),
        ];
        (weight, cells)
    };
    (columns, watch.processes.iter().map(line).filter(|(weight, _)| *weight > 0).collect())
}

fn process_counters(watch: &IoWatch) -> Weighed {
    let columns = vec![
        SheetColumn::words("process", "PROCESS", 16, 0),
        SheetColumn::number("read_bytes_per_s", "READ", 0),
        SheetColumn::number("changed_bytes_per_s", "CHANGED", 0),
    ];
    let lines = watch.process_counters.iter().map(|(process, seen)| {
        let cells = vec![
            Cell::Text(format!("{} (process {process})", seen.name)),
            rate(watch, seen.read_bytes),
            rate(watch, seen.written_bytes),
        ];
        (seen.read_bytes + seen.written_bytes, cells)
    });
    (columns, lines.collect())
}

fn files(watch: &IoWatch) -> Weighed {
    let columns = vec![
        SheetColumn::words("file", "FILE", 24, 0),
        SheetColumn::number("read_bytes_per_s", "READ", 0),
        SheetColumn::number("written_bytes_per_s", "WRITTEN", 0),
        SheetColumn::number("requests_per_s", "REQUESTS", 3),
        SheetColumn::number("latency_p99_ns", "99%", 2),
        SheetColumn::words("by", "BY", 12, 1),
    ];
    let line = |content: &diagnose::io::Content, seen: &FileSeen| {
        let requests = seen.reads.count + seen.writes.count;
        let cells = vec![
            Cell::Text(watch.content_name(*content)),
            rate(watch, seen.reads.bytes),
            rate(watch, seen.writes.bytes),
            Cell::PerSecond(watch.per_second(requests)),
            Cell::Nanos(seen.total.quantile_ns(990)),
            Cell::Text(most_of(watch, seen)),
        ];
        (seen.reads.bytes + seen.writes.bytes, cells)
    };
    (columns, watch.files.iter().map(|(content, seen)| line(content, seen)).collect())
}

/// What the kernel counts, and where requests are seen one by one how long most of them took.
fn devices(watch: &IoWatch) -> Weighed {
    let columns = vec![
        SheetColumn::words("device", "DEVICE", 8, 0),
        SheetColumn::number("read_bytes_per_s", "READ", 0),
        SheetColumn::number("written_bytes_per_s", "WRITTEN", 0),
        SheetColumn::number("reads_per_s", "READS", 3),
        SheetColumn::number("writes_per_s", "WRITES", 3),
        SheetColumn::number("flushes_per_s", "FLUSHES", 5),
        SheetColumn::number("read_mean_ns", "READ MEAN", 2),
        SheetColumn::number("write_mean_ns", "WRITE MEAN", 2),
        SheetColumn::number("read_p99_ns", "READ 99%", 2),
        SheetColumn::number("write_p99_ns", "WRITE 99%", 2),
        SheetColumn::number("depth", "DEPTH", 4),
        SheetColumn::number("busy_permille", "BUSY", 1),
    ];
    let watch_ms = u64::try_from(watch.ns / 1_000_000).unwrap_or(0).max(1);
    let lines = watch.counters.iter().map(|(device, (name, gained))| {
        let p99 = |operation: Operation| {
            let seen = watch.disks.get(device).and_then(|disk| disk.operations.get(&operation));
            let seen = seen.filter(|seen| seen.total.count() > 0);
            Cell::nanos(seen.map(|seen| seen.total.quantile_ns(990)))
        };
        let mean =
            |ms: u64, count: u64| Cell::nanos(ms.saturating_mul(1_000_000).checked_div(count));
        let cells = vec![
            Cell::Text(name.clone()),
            rate(watch, gained.read_bytes),
            rate(watch, gained.written_bytes),
            Cell::PerSecond(watch.per_second(gained.reads)),
            Cell::PerSecond(watch.per_second(gained.writes)),
            Cell::PerSecond(watch.per_second(gained.flushes)),
            mean(gained.read_ms, gained.reads),
            mean(gained.write_ms, gained.writes),
            p99(Operation::Read),
            p99(Operation::Write),
            Cell::Real(units::number::real(gained.weighted_ms) / units::number::real(watch_ms)),
            Cell::Permille(units::number::permille(gained.busy_ms.min(watch_ms), watch_ms)),
        ];
        (gained.read_bytes + gained.written_bytes, cells)
    });
    (columns, lines.collect())
}
