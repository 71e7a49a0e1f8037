//! A volume's members: what they are good for, and what became of them.

use page::safe::{self, printable};
use page::table::{Column, render};
use page::text::{Facts, plural, size, time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use units::number::{permille, sum};
use units::{ByteSize, MemberId};
use upkeep::{Erased, Grown, Joined, MemberState, MemberStatus, Redundancy, Resilvered, Status};

use crate::keys::made;

const COLUMNS: [Column; 4] = [
    Column::whole("MEMBER", true),
    Column::whole("STATE", false),
    Column { title: "LACKS", is_number: true, least: 0, rank: 1 },
    Column { title: "WHERE", is_number: false, least: 12, rank: 2 },
];

/// What a volume's redundancy is now, in words and a table of its members. `going` is
/// [`crate::going_json`] of the recording that goes on.
pub fn status(report: &Status, going: Option<&str>, width: Option<usize>) -> String {
    let mut facts = Facts::default();
    facts.add("volume", safe::path(&report.path));
    facts.add("id", report.volume_id);
    facts.add("shape", shape(report.data_columns, report.parity_columns));
    facts.add("redundancy", redundancy(report));
    facts.add("recorder", recorder(report));
    let going = going.map(object).unwrap_or_default();
    if let Some(line) = going.get("recording").and_then(Value::as_str) {
        facts.add("recording", printable(line));
    }
    let away = || going.get("members_away").and_then(Value::as_array).into_iter().flatten();
    for member in away() {
        let text = member.get("text").and_then(Value::as_str);
        facts.add("away", printable(text.unwrap_or_default()));
    }
    for line in going.get("disk_lines").and_then(Value::as_array).into_iter().flatten() {
        facts.add("disk", printable(line.as_str().unwrap_or_default()));
    }
    for event in going.get("events").and_then(Value::as_array).into_iter().flatten() {
        let line = event.get("line").and_then(Value::as_str);
        facts.add("event", printable(line.unwrap_or_default()));
    }
    for spare in &report.spares {
        let absent = if spare.is_there { "" } else { ": not found" };
        facts.add("spare", format!("{}{absent}", safe::path(&spare.path)));
    }
    let comes_by_itself = |number: usize| {
        let number = Value::from(number);
        away().any(|it| {
            it.get("member") == Some(&number) && it.get("comeback") == Some(&"by_itself".into())
        })
    };
    if let Some(advice) = advice(report, &comes_by_itself) {
        facts.add("to do", advice);
    }
    let row = |(number, member): (usize, &MemberStatus)| {
        let lacks = match member.state {
            MemberState::Stale { .. } => ByteSize(member.stale_bytes).to_string(),
            MemberState::Whole | MemberState::Absent | MemberState::Vacant => "-".to_owned(),
        };
        let place = safe::path(&member.path);
        vec![number.to_string(), member.state.word().to_owned(), lacks, place]
    };
    let rows: Vec<Vec<String>> = report.members.iter().enumerate().map(row).collect();
    format!("{}\n{}", facts.finish(), render(&COLUMNS, &rows, width))
}

fn shape(data: u8, parity: u8) -> String {
    format!("{} of data, {parity} of parity", plural(u64::from(data), "column"))
}

fn redundancy(report: &Status) -> String {
    let say = |part: &Redundancy| match part.spare_members {
        None => "is not complete".to_owned(),
        Some(0) => "survives no further loss".to_owned(),
        Some(count) => format!("survives the loss of {}", plural(u64::from(count), "more member")),
    };
    let Some(newest) = report.redundancy.last() else {
        return "nothing is recorded yet".to_owned();
    };
    let all = report.redundancy.iter().all(|part| part.spare_members == newest.spare_members);
    if all {
        return format!("all that is held {}", say(newest));
    }
    let slots = |part: &Redundancy| part.last.since(part.first).saturating_add(1);
    let total = sum(report.redundancy.iter().map(slots));
    let worst = report.redundancy.iter().min_by_key(|part| part.spare_members);
    let worst = worst.expect("there is a newest part");
    let parts = report.redundancy.iter().filter(|part| part.spare_members == worst.spare_members);
    let share = permille(sum(parts.map(slots)), total) / 10;
    format!("the newest {}; {share} % of what is held {}", say(newest), say(worst))
}

fn recorder(report: &Status) -> String {
    if report.is_open {
        return "at work, or another job has the volume open".to_owned();
    }
    let alive = report.last_alive.map(|alive| format!("last sign of life {} UTC", time(alive)));
    match (alive, report.clean_stop) {
        (None, _) => "none yet".to_owned(),
        (Some(alive), true) => format!("stopped in order; {alive}"),
        (Some(alive), false) => format!("did not stop in order; {alive}"),
    }
}

/// What mends what is wrong first. A recorder that is at work may take a member back without being
/// asked to.
fn advice(report: &Status, comes_by_itself: &dyn Fn(usize) -> bool) -> Option<String> {
    let volume = safe::path(&report.path);
    let find = |wanted: fn(&MemberState) -> bool| {
        report.members.iter().position(|member| wanted(&member.state))
    };
    let stopped = if report.is_open { ", with the recorder stopped" } else { "" };
    let replace = |member| format!("{stopped}: wirespool replace {volume} {member} NEW");
    if let Some(member) = find(|state| *state == MemberState::Absent) {
        return Some(format!("bring member {member} back, or{}", replace(member)));
    }
    if let Some(member) = find(|state| *state == MemberState::Vacant) {
        return Some(format!("fill seat {member}{}", replace(member)));
    }
    let stale = find(|state| matches!(state, MemberState::Stale { .. }))?;
    let is_left_out = report.members.get(stale).is_some_and(|member| member.state.is_left_out());
    Some(match (report.is_open, is_left_out) {
        (true, true) if comes_by_itself(stale) => format!(
            "the recorder takes member {stale} back as soon as it answers; if it is broken{}",
            replace(stale)
        ),
        (true, true) => format!(
            "the recorder takes member {stale} back once it was unplugged and is there again, or \
             when it is started anew; if it is broken{}",
            replace(stale)
        ),
        (true, false) => format!("member {stale} is being made whole by the recorder"),
        (false, _) => format!("wirespool resilver {volume}"),
    })
}

/// A status and how the recording stands. [`crate::read_status`] reads it again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Standing<'a> {
    #[serde(flatten)]
    status: &'a Status,
    #[serde(flatten)]
    going: Map<String, Value>,
}

/// What a recorder said; nothing where it is of another mind about JSON.
fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The same as a JSON object.
pub fn status_json(status: &Status, going: Option<&str>) -> String {
    safe::json_pretty(&Standing { status, going: going.map(object).unwrap_or_default() })
}

/// What members were given back, in words.
pub fn resilvered(report: &Resilvered) -> String {
    let mut lines = Vec::new();
    lines.push(match (report.bytes, report.is_stopped) {
        (0, false) => "every member holds what it should".to_owned(),
        (bytes, false) => format!("{} written; nothing is left to do", ByteSize(bytes)),
        (bytes, true) => format!("{} written, then stopped; the next run goes on", ByteSize(bytes)),
    });
    if !report.waits_for.is_empty() {
        let numbers: Vec<String> = report.waits_for.iter().map(MemberId::to_string).collect();
        lines.clear();
        lines.push(format!(
            "{} written; the rest needs what only absent members hold: {}",
            ByteSize(report.bytes),
            numbers.join(", ")
        ));
    }
    for lost in &report.lost {
        let rows = plural(u64::try_from(lost.rows.len()).unwrap_or(u64::MAX), "row");
        lines.push(format!("lost: stripe {}, column {}, {rows}", lost.stripe, lost.column));
    }
    lines.join("\n") + "\n"
}

/// The same as a JSON object.
pub fn resilvered_json(report: &Resilvered) -> String {
    safe::json_pretty(report)
}

/// What was erased, in words.
pub fn erased(report: &Erased) -> String {
    let Erased { keys, slots, left, is_stopped } = report;
    let keys = match (keys.first(), keys.last()) {
        (Some(first), Some(last)) => format!(
            "{} destroyed, {}: what was encrypted by then nobody can read any more\n",
            plural(u64::try_from(keys.len()).unwrap_or(u64::MAX), "data key"),
            made(first.made, last.made)
        ),
        _ => String::new(),
    };
    let count = plural(*slots, "slot");
    let slots = match (slots, is_stopped) {
        (0, false) if keys.is_empty() => "nothing has expired\n".to_owned(),
        (0, false) => String::new(),
        (_, false) if *left == 0 => format!("{count} erased\n"),
        (_, false) => format!("{count} are given out no more; what they hold stays, unreadable\n"),
        (_, true) => {
            format!("stopped; {count} are given out no more, the next run goes on erasing\n")
        }
    };
    format!("{keys}{slots}")
}

/// What was erased, as JSON.
pub fn erased_json(report: &Erased) -> String {
    safe::json_pretty(report)
}

/// A device that became a member or a spare, in words.
pub fn joined(report: &Joined) -> String {
    let path = safe::path(&report.device.path);
    let bytes = size(report.device.size_bytes);
    match report.member {
        Some(member) => format!("{path} ({bytes}) is member {member} now\n"),
        None => format!("{path} ({bytes}) is a spare now\n"),
    }
}

/// The same as a JSON object, with what it was given where it took a member's place.
pub fn joined_json(report: &Joined, given: Option<&Resilvered>) -> String {
    #[derive(Serialize)]
    struct Given<'a> {
        #[serde(flatten)]
        joined: &'a Joined,
        #[serde(skip_serializing_if = "Option::is_none")]
        resilvered: Option<&'a Resilvered>,
    }
    safe::json_pretty(&Given { joined: report, resilvered: given })
}

/// A volume that has grown, in words.
pub fn grown(report: &Grown) -> String {
    let joined: String = report.joined.iter().map(joined).collect();
    let (before, after) = (&report.before, &report.after);
    format!(
        "{joined}new stripes have {}; before: {}\n\
         older stripes stay as they are until the ring passes them\n",
        shape(after.data_columns, after.parity_columns),
        shape(before.data_columns, before.parity_columns),
    )
}

/// The same as a JSON object.
pub fn grown_json(report: &Grown) -> String {
    safe::json_pretty(report)
}
