//! Volumes: created and inspected.

use core::fmt::Write as _;

use format::geometry::{ExtentOrder, Geometry};
use format::superblock::{MemberEntry, Superblock};
use page::forms::{self, QualifiedJson};
use page::safe::{self, printable};
use page::table::{Column, render};
use page::text::{Facts, duration, grouped, plural, size, time, times};
use serde::Serialize;
use units::{ByteSize, Timestamp};
use upkeep::{Created, Encryption, Inspection, MemberState, Recording, RingMap};

use crate::map::MapJson;
use crate::recordings::RecordingJson;
use crate::state::StateJson;

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
    let mut text = match geometry.order {
        ExtentOrder::ZoneLevelled => format!(
            "{} zones in turn, extents of {}",
            geometry.zones,
            ByteSize(extent_bytes(geometry))
        ),
        _ => "first to last".to_owned(),
    };
    if geometry.usable_begin > 0 || geometry.usable_end < member_bytes {
        let (begin, end) = ring_range(geometry);
        write!(text, ", from {} to {} of each member", ByteSize(begin), ByteSize(end))
            .expect("a string takes all text");
    }
    text
}

fn extent_bytes(geometry: &Geometry) -> u64 {
    u64::from(geometry.slots_per_extent) * u64::from(geometry.piece_bytes)
}

/// First and end byte of the ring on each member.
fn ring_range(geometry: &Geometry) -> (u64, u64) {
    let bytes = geometry.slots * u64::from(geometry.piece_bytes);
    (geometry.slot0_offset, geometry.slot0_offset + bytes)
}

/// Order and place of the ring in JSON.
#[derive(Serialize)]
struct LayoutJson {
    zones: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    extent_bytes: Option<u64>,
    ring_begin: u64,
    ring_end: u64,
    usable_begin: u64,
    usable_end: u64,
}

impl LayoutJson {
    fn new(geometry: &Geometry) -> Self {
        let (ring_begin, ring_end) = ring_range(geometry);
        let is_levelled = geometry.order == ExtentOrder::ZoneLevelled;
        Self {
            zones: geometry.zones,
            extent_bytes: is_levelled.then(|| extent_bytes(geometry)),
            ring_begin,
            ring_end,
            usable_begin: geometry.usable_begin,
            usable_end: geometry.usable_end,
        }
    }
}

#[derive(Serialize)]
struct CreatedJson<'a> {
    path: String,
    volume_id: String,
    size_bytes: u64,
    slots: u64,
    piece_bytes: u32,
    data_columns: u8,
    parity_columns: u8,
    layout: LayoutJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    qualified: Option<QualifiedJson>,
    /// Why a qualification chose what it did.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reasons: &'a [String],
    members: Vec<CreatedMemberJson<'a>>,
}

#[derive(Serialize)]
struct CreatedMemberJson<'a> {
    path: String,
    size_bytes: u64,
    sparse: bool,
    partitioned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    destroyed: Option<&'a str>,
}

/// A new volume as a JSON object.
pub fn created_json(report: &Created, reasons: &[String]) -> String {
    let geometry = &report.superblock.geometry;
    let members = report.members.iter().map(|member| CreatedMemberJson {
        path: safe::path_value(&member.path),
        size_bytes: member.size_bytes,
        sparse: member.sparse,
        partitioned: member.partitioned,
        destroyed: member.destroyed.as_deref(),
    });
    let first = report.members.first();
    safe::json_pretty(&CreatedJson {
        path: first.map(|member| safe::path_value(&member.path)).unwrap_or_default(),
        volume_id: report.superblock.volume_id.to_string(),
        size_bytes: first.map_or(0, |member| member.size_bytes),
        slots: geometry.slots,
        piece_bytes: geometry.piece_bytes,
        data_columns: geometry.data_columns,
        parity_columns: geometry.parity_columns,
        layout: LayoutJson::new(geometry),
        qualified: report.superblock.qualified.as_ref().map(QualifiedJson::new),
        reasons,
        members: members.collect(),
    })
}

/// An inspection, in words and a table of recordings.
pub fn inspection(report: &Inspection, width: Option<usize>) -> String {
    let Superblock { geometry, .. } = &report.superblock;
    let mut facts = Facts::default();
    facts.add("volume", safe::path(&report.path));
    facts.add("id", report.superblock.volume_id);
    facts.add("created", format!("{} UTC", time(report.superblock.created)));
    facts.add("ring", ring(geometry));
    facts.add("order", order(geometry, report.smallest_member_bytes));
    if let Some(qualified) = &report.superblock.qualified {
        facts.add("qualified", forms::qualified(qualified));
    }
    if let Some(Encryption { recipients, .. }) = &report.encryption {
        add_recipients(&mut facts, recipients);
    }
    let entries = report.superblock.members.iter().zip(&report.members);
    for (number, (entry, state)) in (0_u8..).zip(entries) {
        let why = report.why_absent.iter().find(|(member, _)| *member == number);
        let condition =
            why.map_or_else(|| condition(*state), |(_, reason)| format!(": absent: {reason}"));
        facts.add("member", format!("{}{condition}", printable(&entry.path)));
    }
    facts.add("used", used(report));
    if let Some(times_held) = report.times {
        facts.add("packets", times(times_held));
    }
    if let Some(reach) = &report.reach {
        facts.add(
            "reach-back",
            format!("about {} when full, at this rate", duration(reach.full_ns)),
        );
    }
    if let Some(text) = max_age(&report.superblock) {
        facts.add("maximum age", text);
    }
    if let Some(span) = report.span {
        facts.add("stripes", format!("{} to {}, all durable", span.tail, span.acknowledged));
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
        MemberState::Stale { from, to: u64::MAX } => format!(": missed stripes {from} up to now"),
        MemberState::Stale { from, to } => format!(": missed stripes {from} to {}", to - 1),
    }
}

/// How long packets are given out, if that has a bound.
fn max_age(superblock: &Superblock) -> Option<String> {
    let through = superblock.expired_through;
    let expired =
        (through > Timestamp::MIN).then(|| format!("expired up to {} UTC", time(through)));
    let erases = if superblock.erases { ", erased" } else { "" };
    match (superblock.max_age_ns, expired) {
        (0, None) => None,
        (0, Some(expired)) => Some(format!("none; {expired}")),
        (age, None) => Some(format!("{}{erases}", duration(age))),
        (age, Some(expired)) => Some(format!("{}; {expired}{erases}", duration(age))),
    }
}

fn used(report: &Inspection) -> String {
    let slots = report.superblock.geometry.slots;
    let laps = report.slots_written / slots;
    let share = units::number::permille(report.slots_used, slots) / 10;
    let lapped = if laps > 0 { format!(", {}", plural(laps, "lap")) } else { String::new() };
    let (used, slots) = (grouped(report.slots_used), grouped(slots));
    format!("{used} of {slots} slots ({share} %){lapped}")
}

fn last_stop(report: &Inspection) -> &'static str {
    match (report.span, report.clean_stop) {
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

/// A volume as it is.
#[derive(Serialize)]
struct InspectionJson<'a> {
    path: String,
    volume_id: String,
    created_ns: i64,
    members: Vec<MemberJson<'a>>,
    data_columns: u8,
    parity_columns: u8,
    piece_bytes: u32,
    layout: LayoutJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    qualified: Option<QualifiedJson>,
    slots: u64,
    slots_used: u64,
    slots_written: u64,
    window: u16,
    /// Public keys of those who can read what is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recipients: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_through_ns: Option<i64>,
    /// Whether what is older is erased, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    erases: Option<bool>,
    epoch: u32,
    clean_stop: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reach_full_ns: Option<i64>,
    index: IndexJson,
    recordings: Vec<RecordingJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapJson<'a>>,
}

#[derive(Serialize)]
struct MemberJson<'a> {
    path: &'a str,
    #[serde(flatten)]
    state: StateJson,
}

impl<'a> MemberJson<'a> {
    fn new((entry, state): (&'a MemberEntry, &MemberState)) -> Self {
        Self { path: &entry.path, state: StateJson::new(*state) }
    }
}

#[derive(Serialize)]
struct IndexJson {
    segments: u64,
    sessions: u64,
    packets: u64,
    bytes: u64,
    segments_unindexed: u64,
    segments_with_gaps: u64,
    /// What ended the indexer twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOutJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken_at: Option<String>,
}

#[derive(Serialize)]
struct LeftOutJson {
    first_stripe: String,
    last_stripe: String,
    packets: u64,
}

/// An inspection as a JSON object, with a map if there is one.
pub fn inspection_json(report: &Inspection, map: Option<&RingMap>) -> String {
    let superblock = &report.superblock;
    let index = &report.index;
    let recordings = report.recordings.iter().map(RecordingJson::new);
    let encryption = report.encryption.iter();
    safe::json_pretty(&InspectionJson {
        path: safe::path_value(&report.path),
        volume_id: superblock.volume_id.to_string(),
        created_ns: superblock.created.0,
        members: superblock.members.iter().zip(&report.members).map(MemberJson::new).collect(),
        data_columns: superblock.geometry.data_columns,
        parity_columns: superblock.geometry.parity_columns,
        piece_bytes: superblock.geometry.piece_bytes,
        layout: LayoutJson::new(&superblock.geometry),
        qualified: superblock.qualified.as_ref().map(QualifiedJson::new),
        slots: superblock.geometry.slots,
        slots_used: report.slots_used,
        slots_written: report.slots_written,
        window: superblock.window,
        recipients: encryption.flat_map(|it| &it.recipients).map(String::as_str).collect(),
        max_age_ns: Some(superblock.max_age_ns).filter(|&age| age > 0),
        erases: superblock.erases.then_some(true),
        expired_through_ns: Some(superblock.expired_through)
            .filter(|&through| through > Timestamp::MIN)
            .map(|Timestamp(ns)| ns),
        epoch: superblock.joined_epoch,
        clean_stop: report.clean_stop,
        tail_sequence: report.span.map(|span| span.tail),
        newest_sequence: report.newest,
        acknowledged: report.span.map(|span| span.acknowledged.to_string()),
        start_ns: report.times.map(|times| times.0.0),
        end_ns: report.times.map(|times| times.1.0),
        reach_full_ns: report.reach.map(|reach| reach.full_ns),
        index: IndexJson {
            segments: index.segments,
            sessions: index.sessions,
            packets: index.packets,
            bytes: index.bytes,
            segments_unindexed: index.segments_unindexed,
            segments_with_gaps: index.segments_with_gaps,
            left_out: index
                .left_out
                .iter()
                .map(|left| LeftOutJson {
                    first_stripe: left.first.to_string(),
                    last_stripe: left.last.to_string(),
                    packets: left.packets,
                })
                .collect(),
            broken_at: index.broken_at.map(|at| at.to_string()),
        },
        recordings: recordings.collect(),
        map: map.map(MapJson::new),
    })
}
