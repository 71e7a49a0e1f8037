//! The manifest of an extract of many sensors: `verify-extract` compares it with its file, as it
//! does that of one volume.

use completeness::State;
use evidence::{Maker, OutputSummary, SigningKey};
use manifest::CaseInfo;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::Timestamp;

use crate::part::{Part, Whole};

/// An extract that is written. Fields are keys in JSON, in this order.
#[derive(Debug, Serialize)]
pub struct Extracted<'a> {
    /// What it was made for.
    #[serde(flatten)]
    pub case: CaseInfo,
    /// The query as it was given.
    pub query: &'a str,
    /// What the sensors were asked besides.
    #[serde(rename = "request", serialize_with = "parameters")]
    pub parameters: &'a [(&'static str, String)],
    /// When it was made.
    #[serde(skip)]
    pub made: Timestamp,
    /// What came of the sensors.
    #[serde(flatten, serialize_with = "judged")]
    pub whole: &'a Whole,
    /// The bytes that were written.
    pub outputs: [OutputSummary; 1],
    /// SHA-256 of what the sensors sent, by their numbers, in hex digits: their audits have it.
    #[serde(skip)]
    pub hashes: &'a [Option<String>],
}

fn parameters<S: Serializer>(all: &[(&str, String)], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parameter<'a> {
        name: &'a str,
        value: &'a str,
    }
    to.collect_seq(all.iter().map(|(name, value)| Parameter { name, value }))
}

/// The verdict, and the same for people, a line each.
fn judged<S: Serializer>(whole: &Whole, to: S) -> Result<S::Ok, S::Error> {
    let (state, statement) = (whole.state(), whole.to_string());
    let mut judged = to.serialize_map(None)?;
    judged.serialize_entry("complete", &(state == State::Complete))?;
    judged.serialize_entry("state", &state)?;
    judged.serialize_entry("statement", &statement.lines().collect::<Vec<_>>())?;
    judged.end()
}

/// An extract with what is said of each sensor.
#[derive(Serialize)]
struct WithSensors<'a> {
    #[serde(flatten)]
    extracted: &'a Extracted<'a>,
    sensors: Vec<OfSensor<'a>>,
}

/// What is said of a sensor.
#[derive(Serialize)]
struct OfSensor<'a> {
    sensor: &'a str,
    condition: &'static str,
    state: State,
    count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_sha256: Option<&'a str>,
}

impl<'a> OfSensor<'a> {
    fn new(part: &'a Part, hash: Option<&'a Option<String>>) -> Self {
        let condition = part.condition(false);
        Self {
            sensor: &part.sensor,
            condition: condition.name(),
            state: condition.state(),
            count: part.count,
            reasons: part.reasons(),
            sent_sha256: hash.and_then(Option::as_deref),
        }
    }
}

/// The manifest as JSON. It ends with a seal, signed if there is a key.
pub fn manifest_json(of: &Extracted<'_>, made_by: &Maker, key: Option<&SigningKey>) -> String {
    let sensors = of.whole.parts.iter().enumerate();
    let sensors = sensors.map(|(at, part)| OfSensor::new(part, of.hashes.get(at)));
    let form = WithSensors { extracted: of, sensors: sensors.collect() };
    session_view::made_json(&form, of.made, made_by, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::{Fault, Said};

    const TEXT: &str = r#"{
  "version": 2,
  "made_ns": 100,
  "made_by": {
    "program": "wirespool 1",
    "host": "h",
    "user": "u"
  },
  "purpose": "test",
  "query": "tcp",
  "request": [
    {
      "name": "comments",
      "value": "1"
    }
  ],
  "complete": false,
  "state": "incomplete",
  "statement": [
    "3 packets of 2 sensors, incomplete: 1 of 2 complete",
    "east: down, 0 packets",
    "east: refused"
  ],
  "outputs": [
    {
      "file": "a.pcapng",
      "packets": 3,
      "bytes": 400,
      "sha256": "abababababababababababababababababababababababababababababababab",
      "blake3": "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c"
    }
  ],
  "sensors": [
    {
      "sensor": "west",
      "condition": "complete",
      "state": "complete",
      "count": 3,
      "sent_sha256": "00ff"
    },
    {
      "sensor": "east",
      "condition": "down",
      "state": "incomplete",
      "count": 0,
      "reasons": [
        "refused"
      ]
    }
  ],
  "seal": {"blake3":""#;

    #[test]
    fn a_manifest_says_everything_under_names_that_stay() {
        let part = |sensor: &str, count, outcome| Part {
            sensor: sensor.to_owned(),
            count,
            late: 0,
            outcome,
        };
        let down = Err(Fault::Down("refused".to_owned()));
        let parts = vec![part("west", 3, Ok(Said::default())), part("east", 0, down)];
        let output = OutputSummary {
            file: Some("a.pcapng".to_owned()),
            link_type: None,
            packets: 3,
            bytes: 400,
            sha256: [0xab; 32],
            blake3: [0x0c; 32],
        };
        let extracted = Extracted {
            case: CaseInfo { purpose: Some("test".to_owned()), ..CaseInfo::default() },
            query: "tcp",
            parameters: &[("comments", "1".to_owned())],
            made: Timestamp(100),
            whole: &Whole { parts, of: "packet", is_limited: false, has_limit: false },
            outputs: [output],
            hashes: &[Some("00ff".to_owned()), None],
        };
        let [program, host, user] = ["wirespool 1", "h", "u"].map(str::to_owned);
        let maker = Maker { program, host, user, called_by: None };
        let text = manifest_json(&extracted, &maker, None);
        assert_eq!(text.split_at(TEXT.len()).0, TEXT);
        assert!(manifest::parse_manifest(&text).is_ok());
    }
}
