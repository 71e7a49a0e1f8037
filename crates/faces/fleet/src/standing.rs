//! How the sensors stand: a line for each, from what its service says of itself.
//!
//! The clock of a sensor is compared with ours: it says what time it has between a question and its
//! answer, so that its offset is known to half of the time that this took.

use page::safe::{json_pretty, printable};
use page::table::{Column, LongTable};
use page::text::{duration, grouped, plural};
use recording::{Account, State, parse_recorder};
use serde::{Deserialize, Serialize};
use units::number::to_u64;
use upkeep::Status;

use crate::part::Fault;

/// A clock that is off by more than this, whatever the uncertainty, is wrong: sessions that two
/// sensors saw are not known as one any more.
const OFFSET_NS_MAX: i64 = 1_000_000_000;
/// Findings of a sensor that are repeated.
const FINDINGS_MAX: usize = 8;
/// What is worth knowing, and is no fault.
const NOTE: &str = "note";

/// A sensor's clock against ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ClockOffset {
    /// By how much it is ahead of ours.
    pub offset_ns: i64,
    /// It may be more or less by so much.
    pub uncertainty_ns: i64,
}

impl ClockOffset {
    /// Of an answer that said `there_ns`, sent and received at these times of ours.
    pub fn of(sent_ns: i64, there_ns: i64, received_ns: i64) -> Self {
        let half_ns = received_ns.saturating_sub(sent_ns).max(0) / 2;
        let offset_ns = there_ns.saturating_sub(sent_ns.saturating_add(half_ns));
        // An odd nanosecond belongs to neither half.
        Self { offset_ns, uncertainty_ns: half_ns.saturating_add(1) }
    }

    /// The one of these that is known best.
    #[must_use]
    pub fn best(self, other: Self) -> Self {
        if other.uncertainty_ns < self.uncertainty_ns { other } else { self }
    }

    fn is_wrong(self) -> bool {
        let most = self.offset_ns.unsigned_abs().saturating_sub(self.uncertainty_ns.unsigned_abs());
        most > OFFSET_NS_MAX.unsigned_abs()
    }

    fn in_words(self) -> String {
        let sign = if self.offset_ns < 0 { "-" } else { "+" };
        let most = i64::try_from(self.offset_ns.unsigned_abs()).unwrap_or(i64::MAX);
        format!("{sign}{} +-{}", duration(most), duration(self.uncertainty_ns))
    }
}

/// How a sensor stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Standing {
    /// Version of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A recorder runs.
    pub is_recording: bool,
    /// One runs, and did not say how it stands.
    #[serde(skip)]
    pub is_silent: bool,
    /// Its members are all there, and lack nothing.
    pub is_whole: bool,
    /// Packets that were lost since its recording began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Of the memory between capture and disks so much is free now, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_free_percent: Option<u64>,
    /// How far back its packets reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach_back_ns: Option<i64>,
    /// Its clock against ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockOffset>,
    /// What is wrong with it, as it finds itself.
    pub findings: Vec<String>,
    /// What it did not say, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaid: Vec<String>,
}

#[derive(Deserialize)]
struct Recordings {
    recordings: Vec<Recording>,
}

#[derive(Deserialize)]
struct Recording {
    start_ns: i64,
}

#[derive(Deserialize)]
struct Findings {
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    severity: String,
    what: String,
}

impl Standing {
    /// Takes what its volume and its recorder say.
    pub fn take_status(&mut self, status: &Status, going: Option<&str>) {
        self.is_recording = status.is_open;
        self.is_whole = status.is_whole;
        let going = going.and_then(|text| parse_recorder(text).ok());
        self.is_silent = self.is_recording && going.is_none();
        let Some(State { now, .. }) = going else { return };
        let Account { kernel_drops, writer_drops, interface_drops, .. } = now.total;
        let known = [kernel_drops, writer_drops, interface_drops.unwrap_or(0)];
        self.lost_packets = Some(known.into_iter().fold(0, u64::saturating_add));
        let [free, all] = [now.pool_columns_free, now.pool_columns].map(to_u64);
        self.pool_free_percent = free.saturating_mul(100).checked_div(all);
    }

    /// Takes what it says of its recordings, at this time of its own.
    pub fn take_recordings(&mut self, text: &str, now_ns: i64) {
        match serde_json::from_str::<Recordings>(text) {
            Ok(read) => {
                let oldest = read.recordings.iter().map(|recording| recording.start_ns).min();
                self.reach_back_ns = oldest.map(|oldest| now_ns.saturating_sub(oldest));
            }
            Err(error) => self.unsaid.push(format!("its recordings: {error}")),
        }
    }

    /// Takes what it finds wrong with itself.
    pub fn take_findings(&mut self, text: &str) {
        match serde_json::from_str::<Findings>(text) {
            Ok(read) => {
                let wrong = read.findings.into_iter().filter(|finding| finding.severity != NOTE);
                self.findings = wrong.map(|finding| finding.what).take(FINDINGS_MAX).collect();
            }
            Err(error) => self.unsaid.push(format!("its findings: {error}")),
        }
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.is_recording {
            faults.push("no recorder runs".to_owned());
        }
        if self.is_silent {
            faults.push("its recorder does not answer".to_owned());
        }
        if !self.is_whole {
            faults.push("a member is absent or lacks something".to_owned());
        }
        if let Some(lost) = self.lost_packets.filter(|lost| *lost > 0) {
            faults.push(format!("{} lost", plural(lost, "packet")));
        }
        if self.clock.is_some_and(ClockOffset::is_wrong) {
            faults.push("its clock differs from ours".to_owned());
        }
        faults.extend(self.findings.iter().cloned());
        faults
    }
}

/// How a sensor stands, or why that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its name.
    pub sensor: String,
    /// What it said.
    pub outcome: Result<Standing, Fault>,
}

impl Report {
    /// Nothing is wrong with it.
    pub fn is_well(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|standing| standing.faults().is_empty())
    }

    fn condition(&self) -> &'static str {
        match &self.outcome {
            Err(fault) => fault.condition().name(),
            Ok(_) if self.is_well() => "well",
            Ok(_) => "faulty",
        }
    }

    fn cells(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let Ok(standing) = &self.outcome else {
            let rest = core::iter::repeat_with(none).take(7);
            return [self.sensor.clone(), self.condition().to_owned()]
                .into_iter()
                .chain(rest)
                .collect();
        };
        let percent = standing.pool_free_percent.map(|free| format!("{free} %"));
        vec![
            self.sensor.clone(),
            self.condition().to_owned(),
            standing.version.as_deref().map_or_else(none, printable),
            if standing.is_recording { "yes" } else { "no" }.to_owned(),
            standing.lost_packets.map_or_else(none, grouped),
            percent.unwrap_or_else(none),
            standing.reach_back_ns.map_or_else(none, duration),
            standing.clock.map_or_else(none, ClockOffset::in_words),
            standing.findings.len().to_string(),
        ]
    }

    fn reasons(&self) -> Vec<String> {
        match &self.outcome {
            Ok(standing) => [standing.faults(), standing.unsaid.clone()].concat(),
            Err(fault) => vec![fault.why().to_owned()],
        }
    }
}

const COLUMNS: [Column<'_>; 9] = [
    Column::whole("SENSOR", false),
    Column::whole("STATE", false),
    Column { title: "VERSION", is_number: false, least: 0, rank: 2 },
    Column { title: "RECORDS", is_number: false, least: 0, rank: 0 },
    Column { title: "LOST", is_number: true, least: 0, rank: 0 },
    Column { title: "POOL FREE", is_number: true, least: 0, rank: 1 },
    Column { title: "REACH-BACK", is_number: true, least: 0, rank: 1 },
    Column { title: "CLOCK", is_number: true, least: 0, rank: 1 },
    Column { title: "FINDINGS", is_number: true, least: 0, rank: 0 },
];

/// A line for each; then what is wrong, with the sensor's name.
pub fn reports(reports: &[Report], width: Option<usize>) -> String {
    let mut table = LongTable::new(&COLUMNS, width);
    let mut text: String = reports.iter().map(|report| table.push(report.cells())).collect();
    text += &table.finish();
    let reasons = reports.iter().flat_map(|report| {
        let line = |why: String| format!("{}: {}\n", report.sensor, printable(&why));
        report.reasons().into_iter().map(line)
    });
    text.extend(reasons);
    text
}

/// What a sensor said of itself, and what to make of it.
#[derive(Serialize)]
struct Judged<'a> {
    sensor: &'a str,
    condition: &'static str,
    #[serde(flatten)]
    standing: Option<&'a Standing>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct Reports<'a> {
    sensors: Vec<Judged<'a>>,
}

/// The same as a JSON object.
pub fn reports_json(reports: &[Report]) -> String {
    let each = reports.iter().map(|report| Judged {
        sensor: &report.sensor,
        condition: report.condition(),
        standing: report.outcome.as_ref().ok(),
        reasons: report.reasons(),
    });
    json_pretty(&Reports { sensors: each.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Progress;
    use serde_json::Value;

    #[test]
    fn the_offset_of_a_clock_is_known_to_half_of_the_round_trip() {
        let offset = |offset_ns, uncertainty_ns| ClockOffset { offset_ns, uncertainty_ns };
        assert_eq!(ClockOffset::of(100, 1150, 200), offset(1000, 51));
        assert_eq!(ClockOffset::of(100, 150, 200), offset(0, 51));
        assert_eq!(ClockOffset::of(i64::MIN, i64::MAX, 5).uncertainty_ns, i64::MAX / 2 + 1);
        let (near, far) = (offset(5, 10), offset(7, 400));
        assert_eq!((near.best(far), far.best(near)), (near, near));
        // What may be the way is no fault of the clock.
        assert!(!offset(2_500_000_000, 2_000_000_000).is_wrong());
        assert!(offset(-2_500_000_000, 1_000_000).is_wrong());
        assert_eq!(offset(-2_500_000_000, 1_000_000).in_words(), "-2.5 s +-1.0 ms");
    }

    #[test]
    fn what_a_recorder_lost_is_said_by_its_sensor() {
        let total = Account {
            kernel_drops: 3,
            writer_drops: u64::MAX - 10,
            interface_drops: Some(4),
            ..Account::default()
        };
        let now = Progress { total, pool_columns: 8, pool_columns_free: 2, ..Progress::default() };
        let status: Status = serde_json::from_value(serde_json::json!({
            "path": "/v", "volume_id": "ab".repeat(16), "data_columns": 1, "parity_columns": 0,
            "epoch": 1, "is_open": true, "clean_stop": false, "is_whole": true, "members": [],
            "spares": [], "redundancy": [],
        }))
        .unwrap();
        let mut standing = Standing::default();
        standing.take_status(&status, Some(&serde_json::to_string(&now).unwrap()));
        assert_eq!(standing.lost_packets, Some(u64::MAX - 3));
        assert_eq!(standing.pool_free_percent, Some(25));
        assert!(!standing.is_silent && standing.faults()[0].ends_with(" packets lost"));
        for going in [None, Some("{}")] {
            standing.take_status(&status, going);
            assert!(standing.is_silent, "{going:?}");
        }
    }

    #[test]
    fn a_line_for_each_and_what_is_wrong_with_its_reason() {
        let well = Standing { is_whole: true, is_recording: true, ..Standing::default() };
        let silent = Standing { is_recording: false, ..well.clone() };
        let hanging = Standing { is_silent: true, ..well.clone() };
        assert_eq!(hanging.faults(), ["its recorder does not answer"]);
        let mut lossy = well.clone();
        let found =
            |severity: &str, what: &str| serde_json::json!({ "severity": severity, "what": what });
        let all = [found("note", "n"), found("problem", "slow disk")];
        lossy.take_findings(&serde_json::json!({ "findings": all }).to_string());
        lossy
            .take_recordings(r#"{"recordings":[{"start_ns":50},{"start_ns":20}]}"#, 60_000_000_020);
        assert_eq!(lossy.reach_back_ns, Some(60_000_000_000));
        lossy.take_recordings("[]", 0);
        let all = [
            Report { sensor: "a".to_owned(), outcome: Ok(well) },
            Report { sensor: "b".to_owned(), outcome: Ok(lossy) },
            Report {
                sensor: "c".to_owned(),
                outcome: Err(Fault::Down("refused\u{1b}".to_owned())),
            },
            Report { sensor: "d".to_owned(), outcome: Ok(silent) },
        ];
        assert_eq!(all.each_ref().map(Report::is_well), [true, false, false, false]);
        let text = reports(&all, None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("a       well"), "{text}");
        assert!(lines[3].starts_with("c       down"), "{text}");
        assert_eq!(lines[5], "b: slow disk");
        assert!(lines[6].starts_with("b: its recordings: ") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(lines.last(), Some(&"d: no recorder runs"));
        let json: Value = serde_json::from_str(&reports_json(&all)).unwrap();
        assert_eq!(json["sensors"][1]["condition"], "faulty");
        assert_eq!(json["sensors"][1]["findings"][0], "slow disk");
        assert_eq!(json["sensors"][2]["condition"], "down");
    }
}
