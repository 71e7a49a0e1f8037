//! What the members do while they are written to, beside what they were qualified for.

use ::record::{DiskWatch, Disks, Headroom, Level, SlowWrite};
use page::forms::QualifiedJson;
use page::safe::printable;
use page::text::{disk_rate, nanos, plural, time};
use serde::Serialize;
use units::ByteSize;
use units::number::per_second;

/// A line for each device and for the headroom, and the slowest writes.
pub(crate) fn lines(disks: &Disks) -> Vec<String> {
    let mut lines: Vec<String> = disks.disks.iter().map(disk).collect();
    lines.extend(disks.headroom.as_ref().map(headroom));
    if disks.slow_count > 0 {
        let limit = nanos(disks.slow_limit_ns);
        let slowest = disks.slow.iter().max_by_key(|slow| slow.latency_ns);
        lines.push(format!(
            "{} longer than {limit}{}",
            plural(disks.slow_count, "write"),
            slowest.map(|slow| format!("; the slowest: {}", self::slow(slow))).unwrap_or_default(),
        ));
    }
    lines
}

fn disk(disk: &DiskWatch) -> String {
    let watch = &disk.watch;
    let [half, most] = [500, 999].map(|permille| nanos(watch.latency.quantile_ns(permille)));
    let loaded = match watch.loaded_ns {
        0 => String::new(),
        ns => {
            let rate = disk_rate(per_second(watch.loaded_bytes, ns));
            format!("; at full load for {}, {rate}", nanos(ns))
        }
    };
    let broken = match (watch.broken, watch.is_broken) {
        (0, _) => String::new(),
        (count, true) => format!("; SLOWER THAN QUALIFIED, {}", plural(count, "time")),
        (count, false) => {
            format!("; slower than qualified before, {}, not now", plural(count, "time"))
        }
    };
    format!(
        "{}: {}, half within {half}, 99.9 % within {most}, longest {}{loaded}{broken}",
        printable(&disk.path),
        plural(watch.writes, "write"),
        nanos(watch.latency.max_ns()),
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

/// The same for programs.
#[derive(Serialize)]
pub(crate) struct DisksJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    qualified: Option<QualifiedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom: Option<&'a Headroom>,
    slow_limit_ns: u64,
    slow_writes: u64,
    slow: Vec<SlowJson>,
    devices: Vec<DeviceJson<'a>>,
}

#[derive(Serialize)]
struct SlowJson {
    at_ns: i64,
    member: Option<u8>,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<u16>,
    latency_ns: u64,
    depth: u32,
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    member: Option<u8>,
    path: &'a str,
    writes: u64,
    bytes: u64,
    p50_ns: u64,
    p99_ns: u64,
    p99_9_ns: u64,
    max_ns: u64,
    depth_max: u32,
    loaded_ns: u64,
    loaded_bytes: u64,
    slow_writes: u64,
    /// Stretches of full load in which it gave less than was guaranteed.
    slower_than_qualified: u64,
    is_slower_than_qualified: bool,
    backlog_bytes_max: u64,
    /// By 64ths of the surface: writes, bytes, mean and longest latency.
    places: Vec<[u64; 4]>,
}

impl<'a> DisksJson<'a> {
    pub(crate) fn new(disks: &'a Disks) -> Self {
        Self {
            qualified: disks.qualified.as_ref().map(QualifiedJson::new),
            headroom: disks.headroom.as_ref(),
            slow_limit_ns: disks.slow_limit_ns,
            slow_writes: disks.slow_count,
            slow: disks.slow.iter().map(SlowJson::new).collect(),
            devices: disks.disks.iter().map(DeviceJson::new).collect(),
        }
    }
}

impl SlowJson {
    fn new(slow: &SlowWrite) -> Self {
        let SlowWrite { at, member, offset, len, zone, latency_ns, depth } = *slow;
        Self { at_ns: at.0, member, offset, bytes: len, zone, latency_ns, depth }
    }
}

impl<'a> DeviceJson<'a> {
    fn new(disk: &'a DiskWatch) -> Self {
        let watch = &disk.watch;
        let [p50_ns, p99_ns, p99_9_ns] =
            [500, 990, 999].map(|permille| watch.latency.quantile_ns(permille));
        let place = |cell: &::record::Cell| {
            let mean_ns = cell.latency_ns_sum / cell.writes.max(1);
            [cell.writes, cell.bytes, mean_ns, cell.latency_ns_max]
        };
        Self {
            member: disk.member,
            path: &disk.path,
            writes: watch.writes,
            bytes: watch.bytes,
            p50_ns,
            p99_ns,
            p99_9_ns,
            max_ns: watch.latency.max_ns(),
            depth_max: watch.depth_max,
            loaded_ns: watch.loaded_ns,
            loaded_bytes: watch.loaded_bytes,
            slow_writes: watch.slow,
            slower_than_qualified: watch.broken,
            is_slower_than_qualified: watch.is_broken,
            backlog_bytes_max: watch.backlog_bytes_max,
            places: watch.cells.iter().map(place).collect(),
        }
    }
}
