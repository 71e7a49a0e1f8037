//! Volumes: created and inspected.

use core::fmt::Write as _;

use format::geometry::Geometry;
use format::head::VolumeId;
use format::superblock::Qualified;
use page::forms;
use page::safe::{self, printable};
use page::table::{Column, render};
use page::text::{Facts, duration, grouped, plural, size, time, times};
use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteSize, Sequence, Timestamp};
use upkeep::{
    Created, CreatedMember, InspectedMember, Inspection, MemberState, Recording, RingLayout,
    RingMap,
};

/// A new volume, in words, with the reasons of what a qualification chose.
pub fn created(report: &Created, reasons: &[String]) -> String {
    let geometry = &report.superblock.geometry;
    let mut facts = Facts::default();
    let mut members = report.members.iter();
    if let Some(first) = members.next() {
        facts.add("volume", safe::path(&first.path));
        facts.add("id", report.superblock.volume_id);
        facts.add("size", size(first.size_bytes));
    }
    for member in members {
        facts.add("member", format!("{}, {}", safe::path(&member.path), size(member.size_bytes)));
    }
    facts.add("ring", ring(geometry));
    // Virtual disks and device-mapper call themselves rotating unless configured otherwise.
    let why = if report.zones_by_disk {
        ", because the kernel calls a member rotating; if it is flash: --zones 1"
    } else {
        ""
    };
    let smallest = report.members.iter().map(|member| member.size_bytes).min().unwrap_or(0);
    facts.add("order", format!("{}{why}", order(geometry, smallest)));
    if let Some(qualified) = &report.superblock.qualified {
        facts.add("qualified", forms::qualified(qualified));
    }
    add_recipients(&mut facts, &report.recipients);
    for reason in reasons {
        facts.add("because", reason);
    }
    for member in &report.members {
        if let Some(destroyed) = &member.destroyed {
            facts.add("destroyed", destroyed);
        }
        if member.partitioned {
            let path = safe::path(&member.path);
            facts.add("note", format!("the disk has a partition table now; use {path}"));
        }
    }
    if report.members.iter().any(|member| member.sparse) {
        facts.add("note", "sparse: the first lap is slower, and a full disk would stop it");
    }
    for note in report.members.iter().flat_map(|member| &member.notes) {
        facts.add("note", note);
    }
    facts.finish()
}

fn ring(geometry: &Geometry) -> String {
    let piece = u64::from(geometry.piece_bytes);
    let slots = plural(geometry.slots, "slot");
    let data = geometry.slots * piece * u64::from(geometry.data_columns);
    let text = format!("{} in {slots} of {}", ByteSize(data), ByteSize(piece));
    match (geometry.data_columns, geometry.parity_columns) {
        (1, 0) => text,
        (data, 0) => format!("{text} on each of {data} members"),
        (data, parity) => format!("{text} on each of {data} members, and {parity} for parity"),
    }
}

/// In which order the ring goes over the surface, and over which part of it.
fn order(geometry: &Geometry, member_bytes: u64) -> String {
    let layout = RingLayout::from(geometry);
    let mut text = match layout.extent_bytes {
        Some(bytes) => format!("{} zones in turn, extents of {}", layout.zones, ByteSize(bytes)),
        None => "first to last".to_owned(),
    };
    if layout.usable_begin > 0 || layout.usable_end < member_bytes {
        let (begin, end) = (layout.ring_begin, layout.ring_end);
        write!(text, ", from {} to {} of each member", ByteSize(begin), ByteSize(end))
            .expect("a string takes all text");
    }
    text
}

#[derive(Serialize)]
struct NewVolume<'a> {
    path: String,
    volume_id: VolumeId,
    size_bytes: u64,
    slots: u64,
    piece_bytes: u32,
    data_columns: u8,
    parity_columns: u8,
    layout: RingLayout,
    #[serde(skip_serializing_if = "Option::is_none")]
    qualified: Option<&'a Qualified>,
    /// Why a qualification chose what it did.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reasons: &'a [String],
    members: &'a [CreatedMember],
}

/// A new volume as a JSON object.
pub fn created_json(report: &Created, reasons: &[String]) -> String {
    let geometry = &report.superblock.geometry;
    let first = report.members.first();
    safe::json_pretty(&NewVolume {
        path: first.map(|member| safe::path_value(&member.path)).unwrap_or_default(),
        volume_id: report.superblock.volume_id,
        size_bytes: first.map_or(0, |member| member.size_bytes),
        slots: geometry.slots,
        piece_bytes: geometry.piece_bytes,
        data_columns: geometry.data_columns,
        parity_columns: geometry.parity_columns,
        layout: geometry.into(),
        qualified: report.superblock.qualified.as_ref(),
        reasons,
        members: &report.members,
    })
}

/// An inspection, in words and a table of recordings.
pub fn inspection(report: &Inspection, width: Option<usize>) -> String {
    let mut facts = Facts::default();
    facts.add("volume", safe::path(&report.path));
    facts.add("id", report.volume_id);
    facts.add("created", format!("{} UTC", time(report.created)));
    facts.add("ring", ring(&report.geometry));
    facts.add("order", order(&report.geometry, report.smallest_member_bytes));
    if let Some(qualified) = &report.qualified {
        facts.add("qualified", forms::qualified(qualified));
    }
    add_recipients(&mut facts, &report.recipients);
    for InspectedMember { path, state, why_absent } in &report.members {
        let why = why_absent.as_ref().map(|reason| format!(": absent: {reason}"));
        let condition = why.unwrap_or_else(|| condition(*state));
        facts.add("member", format!("{}{condition}", printable(path)));
    }
    facts.add("used", used(report));
    if let Some(times_held) = report.times {
        facts.add("packets", times(times_held));
    }
    if let Some(ns) = report.reach_ns {
        facts.add("reach-back", format!("about {} when full, at this rate", duration(ns)));
    }
    if let Some(text) = max_age(report) {
        facts.add("maximum age", text);
    }
    if let Some((tail, acknowledged)) = report.tail.zip(report.acknowledged) {
        facts.add("stripes", format!("{tail} to {acknowledged}, all durable"));
    }
    facts.add("last stop", last_stop(report));
    facts.add("index", index(report));
    let mut text = facts.finish();
    if !report.recordings.is_empty() {
        text.push('\n');
        text.push_str(&recordings(&report.recordings, width));
    }
    text
}

/// Who can read what is recorded, where not everybody can.
fn add_recipients(facts: &mut Facts, recipients: &[String]) {
    for recipient in recipients {
        facts.add("encrypted to", printable(recipient));
    }
}

/// What is not as it should be with a member.
fn condition(state: MemberState) -> String {
    match state {
        MemberState::Whole => String::new(),
        MemberState::Absent => ": not found".to_owned(),
        MemberState::Vacant => "none: the seat is empty".to_owned(),
        MemberState::Stale { from, to: Sequence::MAX } => {
            format!(": missed stripes {from} up to now")
        }
        MemberState::Stale { from, to } => format!(": missed stripes {from} to {}", to - 1),
    }
}

/// How long packets are given out, if that has a bound.
fn max_age(report: &Inspection) -> Option<String> {
    let expired = report.expired_through;
    let expired = expired.map(|through| format!("expired up to {} UTC", time(through)));
    let erases = if report.erases { ", erased" } else { "" };
    match (report.max_age_ns, expired) {
        (None, None) => None,
        (None, Some(expired)) => Some(format!("none; {expired}")),
        (Some(age), None) => Some(format!("{}{erases}", duration(age))),
        (Some(age), Some(expired)) => Some(format!("{}; {expired}{erases}", duration(age))),
    }
}

fn used(report: &Inspection) -> String {
    let slots = report.slots;
    let laps = report.slots_written / slots;
    let share = units::number::permille(report.slots_used, slots) / 10;
    let lapped = if laps > 0 { format!(", {}", plural(laps, "lap")) } else { String::new() };
    let (used, slots) = (grouped(report.slots_used), grouped(slots));
    format!("{used} of {slots} slots ({share} %){lapped}")
}

fn last_stop(report: &Inspection) -> &'static str {
    match (report.tail, report.clean_stop) {
        (None, _) => "never written",
        (Some(_), true) => "in order",
        (Some(_), false) => "not in order, or still recording",
    }
}

fn index(report: &Inspection) -> String {
    let summary = &report.index;
    if let Some(at) = summary.broken_at {
        return format!("stripe {at} is damaged; extract rebuilds the index from packets");
    }
    let mut text = format!(
        "{} in {}, {}",
        plural(summary.sessions, "row"),
        plural(summary.segments, "segment"),
        ByteSize(summary.bytes)
    );
    if summary.segments_unindexed > 0 {
        let count = plural(summary.segments_unindexed, "segment");
        text = format!("{text}; packets without a row in {count}");
    }
    if let (Some(first), Some(last)) = (summary.left_out.first(), summary.left_out.last()) {
        let packets = summary.left_out.iter().map(|left| left.packets).fold(0, u64::saturating_add);
        let packets = plural(packets, "packet");
        let (first, last) = (first.first, last.last);
        text = format!(
            "{text}; {packets} left out for good: they ended the indexer twice (stripes {first} to \
             {last})"
        );
    }
    if summary.segments_with_gaps > 0 {
        text = format!("{text}; gaps in {}", plural(summary.segments_with_gaps, "segment"));
    }
    text
}

const RECORDING_COLUMNS: [Column; 6] = [
    Column::whole("EPOCH", true),
    Column { title: "RECORDING", is_number: false, least: 12, rank: 0 },
    Column::whole("FROM", false),
    Column { title: "TO", is_number: false, least: 0, rank: 2 },
    Column { title: "PACKETS", is_number: true, least: 0, rank: 3 },
    Column { title: "LEFT", is_number: true, least: 0, rank: 1 },
];

fn recordings(recordings: &[Recording], width: Option<usize>) -> String {
    let row = |recording: &Recording| {
        let bound = |pick: fn((Timestamp, Timestamp)) -> Timestamp| {
            recording.times.map_or_else(|| "-".to_owned(), |times| time(pick(times)))
        };
        vec![
            recording.epoch.to_string(),
            recording.name.as_deref().map_or_else(|| "-".to_owned(), printable),
            bound(|times| times.0),
            bound(|times| times.1),
            recording.indexed.map_or_else(|| "-".to_owned(), |(packets, _)| grouped(packets)),
            recording.share_left.map_or_else(|| "partly".to_owned(), percent),
        ]
    };
    let rows: Vec<Vec<String>> = recordings.iter().map(row).collect();
    render(&RECORDING_COLUMNS, &rows, width)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A volume as it is, with a map if there is one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Inspection")]
pub struct WithMap<'a> {
    #[serde(flatten)]
    report: &'a Inspection,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<&'a RingMap>,
}

/// An inspection as a JSON object, with a map if there is one.
pub fn inspection_json(report: &Inspection, map: Option<&RingMap>) -> String {
    safe::json_pretty(&WithMap { report, map })
}
