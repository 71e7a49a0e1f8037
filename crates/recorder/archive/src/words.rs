//! Reports as text and as JSON.

use completeness::State;
use serde::Serialize;
use units::ByteSize;

use crate::compact::CompactReport;
use crate::event::{Behind, Event, Report};
use crate::verify::VerifyReport;

/// An event in a line.
pub fn event_text(event: &Event) -> String {
    match event {
        Event::Begun { behind: None, .. } => "nothing of this volume is archived yet".to_owned(),
        Event::Begun { behind: Some(behind), open_sessions, .. } => {
            format!("goes on behind stripe {behind}, with {}", open(*open_sessions))
        }
        Event::Archived { first, last, sessions, bytes, behind, .. } => {
            let (sessions, size) = (page::text::plural(*sessions, "session"), ByteSize(*bytes));
            format!("stripes {first} to {last}: {sessions}, {size}; {}", lag(behind))
        }
        Event::Waiting { behind } => format!("all that is closed is archived; {}", lag(behind)),
        Event::Overwritten { first, last, slots } => format!(
            "the ring has overwritten stripes {first} to {last} before they were archived ({}): \
             sessions that have packets nowhere else are missing",
            page::text::plural(*slots, "slot")
        ),
        Event::Away { why, for_ns } => {
            format!("{why}; tried again for {} so far", page::text::duration(*for_ns))
        }
        Event::Back { after_ns } => {
            format!("the store is back after {}", page::text::duration(*after_ns))
        }
        Event::Remark { text } => text.clone(),
    }
}

fn open(sessions: u64) -> String {
    format!("{} that may go on", page::text::plural(sessions, "session"))
}

/// How far behind.
fn lag(behind: &Behind) -> String {
    let Behind { lag_ns, lag_slots, ring_slots } = *behind;
    if lag_ns == 0 {
        return "nothing waits".to_owned();
    }
    let share = page::text::percent(lag_slots, ring_slots.max(1));
    format!("{} behind the recorder, {share} of the ring", page::text::duration(lag_ns))
}

/// What a run has archived and where, with what can be said of it.
#[derive(Serialize)]
struct Done<'a> {
    event: &'static str,
    url: &'a str,
    sensor: &'a str,
    #[serde(flatten)]
    report: &'a Report,
    state: State,
    archive_state: State,
    statement: String,
}

impl Report {
    /// What can be said of what was archived.
    pub fn state(&self) -> State {
        let own = self.completeness.state();
        let is_cut = self.overwritten_slots > 0 || self.has_lost_open;
        if is_cut { State::Incomplete } else { own }
    }
}

fn statement(report: &Report) -> String {
    let text = report.completeness.to_string();
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    let mut lines = vec![report.state().name().to_owned()];
    if report.overwritten_slots > 0 {
        let slots = page::text::plural(report.overwritten_slots, "slot");
        lines.push(format!("overwritten before they were archived: {slots} of the ring"));
    }
    if report.has_lost_open {
        lines.push("damage: what was known of open sessions is lost in the store".to_owned());
    }
    if report.archive_state > report.state() {
        let state = report.archive_state.name();
        lines.push(format!("the archive with what was archived before: {state}"));
    }
    if report.cut_sessions > 0 {
        let sessions = page::text::plural(report.cut_sessions, "session");
        lines.push(format!("cut: {sessions} archived before their end, too many were open"));
    }
    lines.extend(rest.lines().map(str::to_owned));
    lines.join("\n")
}

/// A run's report, and the statement.
pub fn archived(report: &Report, (url, sensor): (&str, &str)) -> String {
    let (sessions, size) = (page::text::plural(report.sessions, "session"), ByteSize(report.bytes));
    let parts = page::text::plural(report.parts, "part");
    let objects = page::text::plural(report.objects, "object");
    let waits = match report.open_sessions {
        0 => String::new(),
        count => {
            format!("\n{} are archived when they are over", page::text::plural(count, "session"))
        }
    };
    let stopped = if report.is_stopped { "\nstopped; the next run goes on from here" } else { "" };
    let statement = statement(report);
    format!(
        "{sessions} of {parts} of the ring in {objects} ({size}), sensor {sensor}, {url}\
         {waits}{stopped}\n{statement}\n"
    )
}

/// The same for programs.
pub fn archived_json(report: &Report, (url, sensor): (&str, &str)) -> String {
    page::safe::json_line(&Done {
        event: "done",
        url,
        sensor,
        report,
        state: report.state(),
        archive_state: report.archive_state,
        statement: statement(report),
    })
}

/// What was found in a store.
pub fn verified(report: &VerifyReport, url: &str) -> String {
    let (objects, size) = (page::text::plural(report.objects, "object"), ByteSize(report.bytes));
    let (manifests, sensors) = (report.manifests, report.sensors);
    let mut lines: Vec<String> = report
        .findings
        .iter()
        .map(|finding| {
            // Whoever may write to the store chooses names.
            let name = page::safe::printable(&finding.name);
            format!("{}: {name}: {}", finding.kind.name(), page::safe::printable(&finding.why))
        })
        .collect();
    let listed = units::number::to_u64(lines.len());
    if report.found > listed {
        lines.push(format!("and {} further findings", report.found - listed));
    }
    if report.unfinished > 0 {
        let objects = page::text::plural(report.unfinished, "object");
        lines.push(format!("{objects} of a part that is not archived to its end: archive goes on"));
    }
    let sessions = page::text::plural(report.sessions, "session");
    let verdict = match report.found {
        0 if report.is_stopped => "stopped; nothing wrong so far".to_owned(),
        0 => "all as it was written".to_owned(),
        found => page::text::plural(found, "finding"),
    };
    lines.push(format!(
        "{url}: {sessions} in {objects} ({size}) and {} of {}: {verdict}",
        page::text::plural(manifests, "manifest"),
        page::text::plural(sensors, "sensor"),
    ));
    lines.join("\n") + "\n"
}

/// The same for programs.
pub fn verified_json(report: &VerifyReport) -> String {
    page::safe::json_pretty(report)
}

/// What was merged.
pub fn compacted(report: &CompactReport, url: &str) -> String {
    let merged = page::text::plural(report.merged, "object");
    let (from, to) = (ByteSize(report.merged_bytes), ByteSize(report.bytes));
    let objects = page::text::plural(report.objects, "object");
    let hours = page::text::plural(report.hours, "hour");
    let mut lines = vec![format!("{url}: {merged} of {hours} ({from}) are {objects} ({to})")];
    if report.merged == 0 {
        lines = vec![format!("{url}: nothing to merge")];
    }
    if report.removed > 0 {
        let removed = page::text::plural(report.removed, "object");
        lines.push(format!("{removed} that an earlier run had left were removed"));
    }
    if report.damaged > 0 {
        let damaged = page::text::plural(report.damaged, "object");
        lines.push(format!("{damaged} left alone: missing or damaged, archive verify names them"));
    }
    if report.is_stopped {
        lines.push("stopped; the next run goes on from here".to_owned());
    }
    lines.join("\n") + "\n"
}

/// The same for programs.
pub fn compacted_json(report: &CompactReport) -> String {
    page::safe::json_pretty(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Behind;

    #[test]
    fn what_is_done_is_said_under_names_that_stay() {
        let report = Report {
            parts: 1,
            sessions: 2,
            objects: 3,
            bytes: 4,
            open_sessions: 5,
            cut_sessions: 6,
            overwritten_slots: 7,
            behind: Behind { lag_ns: 8, lag_slots: 9, ring_slots: 10 },
            is_stopped: true,
            archive_state: State::Unknown,
            ..Report::default()
        };
        let said = archived_json(&report, ("s3://b", "west"));
        let front = concat!(
            r#"{"event":"done","url":"s3://b","sensor":"west","parts":1,"sessions":2,"objects":3,"#,
            r#""bytes":4,"open_sessions":5,"cut_sessions":6,"overwritten_slots":7,"lag_ns":8,"#,
            r#""lag_slots":9,"ring_slots":10,"stopped":true,"state":"incomplete","#,
            r#""archive_state":"unknown","statement":""#,
        );
        assert!(said.starts_with(front), "{said}");
    }
}
