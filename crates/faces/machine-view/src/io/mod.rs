//! What disks were asked for, and by whom: tables, histograms and a plot of places, and as JSON.

mod html;
mod json;
mod places;
mod touches;

use diagnose::io::{
    Amount, DeviceNumber, DiskLimit, DiskSeen, FileSeen, GroupSeen, IoWatch, Operation,
    OperationSeen, ProcessSeen, Tracing, Unit,
};
use units::{ByteSize, Histogram};

pub(crate) use html::add_disks;
pub use json::io_json;
pub use touches::{touch, touch_json, touches};

use page::safe::printable;
use page::text::{duration, grouped, rate};

use crate::tables::{Table, bar, number, share, time, words};

/// Where there is no terminal to fit.
const WIDTH: usize = 100;

/// What was seen, in words; the findings are [`crate::diagnosis`].
pub fn io(watch: &IoWatch, width: Option<usize>) -> String {
    let mut text = overview(watch).text(width);
    let said: Vec<String> = depths(watch).into_iter().chain(held_back(watch)).collect();
    for line in &said {
        text.extend([line, "\n"]);
    }
    text.push_str(if said.is_empty() { "" } else { "\n" });
    for (disk, seen) in &watch.disks {
        let name = watch.device_name(*disk);
        for (operation, of) in &seen.operations {
            text.push_str(&histogram(&format!("{name}, {}", plural_name(*operation)), of));
        }
        text.push_str(&places::plot(&name, &seen.places, width.unwrap_or(WIDTH)));
    }
    text.push_str(&processes(watch).text(width));
    text.push_str(&files(watch).text(width));
    text
}

/// What disks did, or, where requests were not seen one by one, what the kernel counted.
fn overview(watch: &IoWatch) -> Table {
    match watch.tracing {
        Tracing::Seen { .. } if !watch.disks.is_empty() => disks(watch),
        _ => counters(watch),
    }
}

fn name(operation: Operation) -> &'static str {
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

/// Nothing is a dash, so that a table shows where there is something.
fn bytes(amount: u64) -> String {
    if amount == 0 { "-".to_owned() } else { ByteSize(amount).to_string() }
}

fn disks(watch: &IoWatch) -> Table {
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
    Table::new("Disks", columns, rows)
}

/// How many requests each disk had at the same time, in sentences.
fn depths(watch: &IoWatch) -> Vec<String> {
    let depth = |(disk, seen): (&DeviceNumber, &DiskSeen)| {
        let (disk, mean) = (watch.device_name(*disk), hundredths(seen.device_ns, watch.ns));
        // Of a request whose end is missing the time at the disk is not known.
        let most = match watch.tracing {
            Tracing::Seen { lost_requests: 0, .. } => seen.under_way_max.to_string(),
            _ => "an unknown number".to_owned(),
        };
        format!("{disk} had {mean} requests at the same time in the mean, {most} at most")
    };
    let is_traced = matches!(watch.tracing, Tracing::Seen { .. });
    watch.disks.iter().filter(|_| is_traced).map(depth).collect()
}

/// Which groups of processes waited, and the limits that they have, in sentences.
fn held_back(watch: &IoWatch) -> Vec<String> {
    let of_limit = |group: &GroupSeen, limit: &DiskLimit| {
        let kind = if limit.is_write { "writes to" } else { "reads from" };
        let disk = watch.device_name(limit.device);
        let moved = group.moved_of(limit);
        let (limit, moved) = match limit.unit {
            Unit::Bytes => (
                format!("{}/s", ByteSize(limit.per_second)),
                rate(moved, i64::try_from(group.standing_ns).unwrap_or(i64::MAX)),
            ),
            Unit::Requests => {
                let a_second = units::number::per_second(moved, group.standing_ns);
                (format!("{} requests/s", limit.per_second), format!("{a_second} requests/s"))
            }
        };
        format!("{kind} {disk} are limited to {limit}, and were {moved} then")
    };
    let of_group = |group: &GroupSeen| {
        let limits: Vec<String> =
            group.limited.limits.iter().map(|limit| of_limit(group, limit)).collect();
        format!(
            "cgroup {} waited for {} of {}: {}",
            printable(&group.limited.name),
            time(group.standing_ns),
            duration(watch.ns),
            limits.join("; ")
        )
    };
    watch.groups.iter().map(of_group).collect()
}

/// `3.14`: nanoseconds of all in nanoseconds of one.
fn hundredths(part: u64, of: i64) -> String {
    let of = u128::try_from(of).unwrap_or(0).max(1);
    let hundredths = u128::from(part) * 100 / of;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn disk_rows(
    watch: &IoWatch,
    disk: DeviceNumber,
    seen: &DiskSeen,
) -> impl Iterator<Item = [String; 12]> {
    let row = move |(operation, of): (&Operation, &OperationSeen)| {
        let Amount { count, bytes: all } = of.all;
        let quantile = |of: &Histogram, permille| match of.count() {
            0 => "-".to_owned(),
            _ => time(of.quantile_ns(permille)),
        };
        [
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
    seen.operations.iter().map(row)
}

/// What the kernel counted, where requests could not be seen one by one.
fn counters(watch: &IoWatch) -> Table {
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
        [
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
    Table::new("Block devices, as the kernel counts", columns, rows)
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
    let bar = |count: u64| bar(count, most);
    let columns = [
        number("FROM", 0),
        number("WAITED", 0),
        words("", 24),
        number("AT THE DISK", 0),
        words("", 24),
    ];
    let rows = bounds.into_iter().map(|from| {
        let (waited, took) = (count(&queue, from), count(&device, from));
        [time(from), grouped(waited), bar(waited), grouped(took), bar(took)]
    });
    Table::new(title, columns, rows).text(None)
}

fn processes(watch: &IoWatch) -> Table {
    if matches!(watch.tracing, Tracing::Refused(_)) {
        return process_counters(watch);
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
        [
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
    Table::new("Processes", columns, seen.into_iter().map(row))
}

fn process_counters(watch: &IoWatch) -> Table {
    let columns =
        [number("PROCESS", 0), words("NAME", 12), number("READ", 0), number("CHANGED", 0)];
    let mut seen: Vec<_> = watch.process_counters.iter().collect();
    seen.sort_by_key(|(_, seen)| core::cmp::Reverse(seen.read_bytes + seen.written_bytes));
    let rows = seen.into_iter().map(|(process, seen)| {
        [
            process.to_string(),
            printable(&seen.name),
            bytes(seen.read_bytes),
            bytes(seen.written_bytes),
        ]
    });
    Table::new("Processes, as the kernel counts", columns, rows)
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

fn files(watch: &IoWatch) -> Table {
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
        [
            printable(&watch.content_name(*content)),
            bytes(seen.reads.bytes),
            bytes(seen.readahead.bytes),
            bytes(seen.writes.bytes),
            grouped(seen.reads.count + seen.writes.count),
            time(seen.total.quantile_ns(990)),
            printable(&most_of(watch, seen)),
        ]
    });
    Table::new("Files", columns, rows)
}

#[cfg(test)]
mod tests;
