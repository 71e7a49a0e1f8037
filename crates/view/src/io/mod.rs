//! What disks were asked for, and by whom: tables, histograms and a plot of places, and as JSON.

mod json;
mod places;
mod touches;

use diagnose::io::{
    Amount, DeviceNumber, DiskSeen, FileSeen, IoWatch, Operation, OperationSeen, ProcessSeen,
    Tracing,
};
use units::{ByteSize, Histogram};

pub use json::io_json;
pub use touches::{touch, touch_json, touches};

use crate::table::{Column, render};
use crate::text::{duration, grouped, printable, rate};

/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 20;
/// Where there is no terminal to fit.
const WIDTH: usize = 100;
/// Length of the longest bar of a histogram.
const BAR: u64 = 24;

/// What was seen, in words; the findings are [`crate::diagnosis`].
pub fn io(watch: &IoWatch, width: Option<usize>) -> String {
    let mut text = match &watch.tracing {
        Tracing::Seen { .. } => disks(watch, width),
        Tracing::Refused(_) => String::new(),
    };
    if text.is_empty() {
        text.push_str(&counters(watch, width));
    }
    for (disk, seen) in &watch.disks {
        let name = watch.device_name(*disk);
        for (operation, of) in &seen.operations {
            text.push_str(&histogram(&format!("{name}, {}", plural_name(*operation)), of));
        }
        text.push_str(&places::plot(&name, &seen.places, width.unwrap_or(WIDTH)));
    }
    text.push_str(&processes(watch, width));
    text.push_str(&files(watch, width));
    text
}

pub(super) fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Discard => "discard",
        Operation::Other => "other",
    }
}

fn plural_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "reads",
        Operation::Write => "writes",
        Operation::Flush => "flushes",
        Operation::Discard => "discards",
        Operation::Other => "others",
    }
}

fn titled(
    title: &str,
    columns: &[Column<'_>],
    rows: &[Vec<String>],
    width: Option<usize>,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let shown = rows.get(..ROWS_MAX).unwrap_or(rows);
    let more = rows.len().saturating_sub(ROWS_MAX);
    let rest = if more > 0 { format!("and {more} more (--json has all)\n") } else { String::new() };
    format!("{title}\n{}{rest}\n", render(columns, shown, width))
}

fn number(title: &str, rank: u8) -> Column<'_> {
    Column { title, is_number: true, least: 0, rank }
}

fn words(title: &str, least: usize) -> Column<'_> {
    Column { title, is_number: false, least, rank: 0 }
}

fn time(nanos: u64) -> String {
    duration(i64::try_from(nanos).unwrap_or(i64::MAX))
}

fn share(part: u64, of: u64) -> String {
    let percent = (u128::from(part) * 100).checked_div(u128::from(of)).unwrap_or(0);
    format!("{percent} %")
}

/// Nothing is a dash, so that a table shows where there is something.
fn bytes(amount: u64) -> String {
    if amount == 0 { "-".to_owned() } else { ByteSize(amount).to_string() }
}

fn disks(watch: &IoWatch, width: Option<usize>) -> String {
    let columns = [
        words("DISK", 8),
        words("", 0),
        number("REQUESTS", 0),
        number("BYTES", 0),
        number("RATE", 3),
        number("SIZE", 5),
        number("SEQUENTIAL", 6),
        number("WAIT 50%", 4),
        number("WAIT 99%", 2),
        number("DISK 50%", 2),
        number("DISK 99%", 0),
        number("LONGEST", 3),
    ];
    let rows = watch.disks.iter().flat_map(|(disk, seen)| disk_rows(watch, *disk, seen));
    let rows: Vec<Vec<String>> = rows.collect();
    let depth = |(disk, seen): (&DeviceNumber, &DiskSeen)| {
        let (disk, mean) = (watch.device_name(*disk), hundredths(seen.device_ns, watch.ns));
        // Of a request whose end is missing nobody knows how long the disk had it.
        let most = match watch.tracing {
            Tracing::Seen { lost_requests: 0, .. } => seen.under_way_max.to_string(),
            _ => "an unknown number".to_owned(),
        };
        format!("{disk} had {mean} requests at the same time in the mean, {most} at most\n")
    };
    let depths: String = watch.disks.iter().map(depth).collect();
    let gap = if depths.is_empty() { "" } else { "\n" };
    titled("Disks", &columns, &rows, width) + &depths + gap
}

/// `3.14`: nanoseconds of all in nanoseconds of one.
fn hundredths(part: u64, of: i64) -> String {
    let of = u128::try_from(of).unwrap_or(0).max(1);
    let hundredths = u128::from(part) * 100 / of;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn disk_rows(watch: &IoWatch, disk: DeviceNumber, seen: &DiskSeen) -> Vec<Vec<String>> {
    let row = |(operation, of): (&Operation, &OperationSeen)| {
        let Amount { count, bytes: all } = of.all;
        let quantile = |of: &Histogram, permille| match of.count() {
            0 => "-".to_owned(),
            _ => time(of.quantile_ns(permille)),
        };
        vec![
            watch.device_name(disk),
            name(*operation).to_owned(),
            grouped(count),
            bytes(all),
            rate(all, watch.ns),
            bytes(all / count.max(1)),
            share(of.sequential, count),
            quantile(&of.queue, 500),
            quantile(&of.queue, 990),
            quantile(&of.device, 500),
            quantile(&of.device, 990),
            time(of.device.max_ns()),
        ]
    };
    seen.operations.iter().map(row).collect()
}

/// What the kernel counted, where requests could not be seen one by one.
fn counters(watch: &IoWatch, width: Option<usize>) -> String {
    let columns = [
        words("DISK", 8),
        number("READS", 0),
        number("READ", 0),
        number("EACH", 2),
        number("WRITES", 0),
        number("WRITTEN", 0),
        number("EACH", 2),
        number("FLUSHES", 3),
        number("DISCARDS", 4),
        number("MEAN DEPTH", 5),
        number("BUSY", 1),
    ];
    let each = |ms: u64, count: u64| match count {
        0 => "-".to_owned(),
        count => time(ms.saturating_mul(1_000_000) / count),
    };
    let watch_ms = u64::try_from(watch.ns / 1_000_000).unwrap_or(0);
    let rows = watch.counters.values().map(|(name, gained)| {
        vec![
            name.clone(),
            grouped(gained.reads),
            bytes(gained.read_bytes),
            each(gained.read_ms, gained.reads),
            grouped(gained.writes),
            bytes(gained.written_bytes),
            each(gained.write_ms, gained.writes),
            grouped(gained.flushes),
            grouped(gained.discards),
            hundredths(gained.weighted_ms.saturating_mul(1_000_000), watch.ns),
            share(gained.busy_ms.min(watch_ms), watch_ms),
        ]
    });
    titled("Block devices, as the kernel counts", &columns, &rows.collect::<Vec<_>>(), width)
}

/// Times of one kind of requests: how many waited, and how many were at the disk for how long.
fn histogram(title: &str, seen: &OperationSeen) -> String {
    let (queue, device) = (seen.queue.doublings(), seen.device.doublings());
    let mut bounds: Vec<u64> = queue.iter().chain(&device).map(|(from, _)| *from).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let count = |of: &[(u64, u64)], from: u64| {
        of.iter().find(|(bound, _)| *bound == from).map_or(0, |(_, count)| *count)
    };
    let most = queue.iter().chain(&device).map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let bar = |count: u64| {
        let len = (u128::from(count) * u128::from(BAR)).div_ceil(u128::from(most));
        "#".repeat(usize::try_from(len).unwrap_or(0))
    };
    let columns = [
        number("FROM", 0),
        number("WAITED", 0),
        words("", 24),
        number("AT THE DISK", 0),
        words("", 24),
    ];
    let rows = bounds.into_iter().map(|from| {
        let (waited, took) = (count(&queue, from), count(&device, from));
        vec![time(from), grouped(waited), bar(waited), grouped(took), bar(took)]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    titled(title, &columns, &rows, None)
}

fn processes(watch: &IoWatch, width: Option<usize>) -> String {
    if matches!(watch.tracing, Tracing::Refused(_)) {
        return process_counters(watch, width);
    }
    let columns = [
        number("PROCESS", 0),
        words("NAME", 12),
        number("READS", 3),
        number("READ", 0),
        number("AHEAD", 1),
        number("WRITES", 3),
        number("WRITTEN", 0),
        number("WRITTEN LATER", 0),
        number("OTHER", 4),
        number("50%", 5),
        number("99%", 2),
    ];
    let mut seen: Vec<(&u32, &ProcessSeen)> = watch.processes.iter().collect();
    let weight = |seen: &ProcessSeen| seen.reads.bytes + seen.writes.bytes + seen.later.bytes;
    let is_active = |seen: &ProcessSeen| weight(seen) > 0 || seen.others > 0;
    seen.retain(|(_, seen)| is_active(seen));
    seen.sort_by_key(|(_, seen)| core::cmp::Reverse(weight(seen)));
    let row = |(process, seen): (&u32, &ProcessSeen)| {
        let number = if *process == 0 { "-".to_owned() } else { process.to_string() };
        vec![
            number,
            printable(&seen.name),
            grouped(seen.reads.count),
            bytes(seen.reads.bytes),
            bytes(seen.readahead.bytes),
            grouped(seen.writes.count),
            bytes(seen.writes.bytes),
            bytes(seen.later.bytes),
            grouped(seen.others),
            time(seen.total.quantile_ns(500)),
            time(seen.total.quantile_ns(990)),
        ]
    };
    titled("Processes", &columns, &seen.into_iter().map(row).collect::<Vec<_>>(), width)
}

fn process_counters(watch: &IoWatch, width: Option<usize>) -> String {
    let columns =
        [number("PROCESS", 0), words("NAME", 12), number("READ", 0), number("CHANGED", 0)];
    let mut seen: Vec<_> = watch.process_counters.iter().collect();
    seen.sort_by_key(|(_, seen)| core::cmp::Reverse(seen.read_bytes + seen.written_bytes));
    let rows = seen.into_iter().map(|(process, seen)| {
        vec![
            process.to_string(),
            printable(&seen.name),
            bytes(seen.read_bytes),
            bytes(seen.written_bytes),
        ]
    });
    titled("Processes, as the kernel counts", &columns, &rows.collect::<Vec<_>>(), width)
}

/// Of whom most of the bytes are, in words.
pub(super) fn most_of(watch: &IoWatch, seen: &FileSeen) -> String {
    let most = seen.by.iter().max_by_key(|(_, [read, written])| read.bytes + written.bytes);
    let who = most.map_or_else(String::new, |(process, _)| watch.process_label(*process));
    let changer = seen.changed_by.iter().max_by_key(|(_, pages)| **pages);
    match changer {
        Some((process, _)) if most.is_none_or(|(most, _)| most != process) => {
            format!("{who} for {}", watch.process_label(*process))
        }
        _ => who,
    }
}

fn files(watch: &IoWatch, width: Option<usize>) -> String {
    let columns = [
        words("FILE", 24),
        number("READ", 0),
        number("AHEAD", 1),
        number("WRITTEN", 0),
        number("REQUESTS", 3),
        number("99%", 2),
        words("BY", 16),
    ];
    let mut seen: Vec<_> = watch.files.iter().collect();
    seen.sort_by_key(|(_, seen)| core::cmp::Reverse(seen.reads.bytes + seen.writes.bytes));
    let rows = seen.into_iter().map(|(content, seen)| {
        vec![
            printable(&watch.content_name(*content)),
            bytes(seen.reads.bytes),
            bytes(seen.readahead.bytes),
            bytes(seen.writes.bytes),
            grouped(seen.reads.count + seen.writes.count),
            time(seen.total.quantile_ns(990)),
            printable(&most_of(watch, seen)),
        ]
    });
    titled("Files", &columns, &rows.collect::<Vec<_>>(), width)
}

#[cfg(test)]
mod tests;
