//! What the members do while they are written to, beside what they were qualified for.

use ::record::{DiskWatch, Disks, Headroom, Level, SlowWrite};
use page::safe::printable;
use page::text::{disk_rate, nanos, plural, time};
use units::ByteSize;
use units::number::per_second;

/// A line for each device and for the headroom, and the slowest writes.
pub(crate) fn lines(disks: &Disks) -> Vec<String> {
    let mut lines: Vec<String> = disks.devices.iter().map(disk).collect();
    lines.extend(disks.headroom.as_ref().map(headroom));
    if disks.slow_writes > 0 {
        let limit = nanos(disks.slow_limit_ns);
        let slowest = disks.slow.iter().max_by_key(|slow| slow.latency_ns);
        lines.push(format!(
            "{} longer than {limit}{}",
            plural(disks.slow_writes, "write"),
            slowest.map(|slow| format!("; the slowest: {}", self::slow(slow))).unwrap_or_default(),
        ));
    }
    lines
}

fn disk(disk: &DiskWatch) -> String {
    let [half, most] = [disk.p50_ns, disk.p99_9_ns].map(nanos);
    let loaded = match disk.loaded_ns {
        0 => String::new(),
        ns => {
            let rate = disk_rate(per_second(disk.loaded_bytes, ns));
            format!("; at full load for {}, {rate}", nanos(ns))
        }
    };
    let broken = match (disk.slower_than_qualified, disk.is_slower_than_qualified) {
        (0, _) => String::new(),
        (count, true) => format!("; SLOWER THAN QUALIFIED, {}", plural(count, "time")),
        (count, false) => {
            format!("; slower than qualified before, {}, not now", plural(count, "time"))
        }
    };
    format!(
        "{}: {}, half within {half}, 99.9 % within {most}, longest {}{loaded}{broken}",
        printable(&disk.path),
        plural(disk.writes, "write"),
        nanos(disk.max_ns),
    )
}

fn headroom(headroom: &Headroom) -> String {
    let Headroom { guaranteed_bytes_per_s, offered_bytes_per_s, level, warnings, .. } = *headroom;
    let level = match level {
        Level::Calm => "",
        Level::Near => ", NEAR IT",
        Level::Above => ", ABOVE IT",
    };
    format!(
        "{} of the {} that the disks guarantee{level}; most in ten seconds {}, {}",
        disk_rate(offered_bytes_per_s),
        disk_rate(guaranteed_bytes_per_s),
        disk_rate(headroom.offered_bytes_per_s_max),
        plural(warnings, "warning"),
    )
}

fn slow(slow: &SlowWrite) -> String {
    let member = slow.member.map_or_else(|| "a spare".to_owned(), |it| format!("member {it}"));
    format!(
        "{} at {} UTC, {} at byte {} of {member}, {} under way",
        nanos(slow.latency_ns),
        time(slow.at),
        ByteSize(slow.len),
        slow.offset,
        slow.depth,
    )
}
