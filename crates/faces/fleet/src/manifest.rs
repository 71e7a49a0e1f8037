//! The manifest of an extract of many sensors: `verify-extract` compares it with its file, as it
//! does that of one volume.

use completeness::State;
use evidence::OutputSummary;
use evidence::{Maker, SigningKey};
use manifest::CaseInfo;
use manifest::{MANIFEST_VERSION, OutputForm};
use serde::Serialize;
use units::Timestamp;

use crate::part::{Part, Whole};

/// An extract that is written.
#[derive(Debug)]
pub struct Extracted<'a> {
    /// What it was made for.
    pub case: CaseInfo,
    /// The query as it was given.
    pub query: &'a str,
    /// What the sensors were asked besides.
    pub parameters: &'a [(&'static str, String)],
    /// When it was made.
    pub made: Timestamp,
    /// Name of its file; none of a pipe.
    pub file: Option<String>,
    /// The bytes that were written.
    pub output: OutputSummary,
    /// What came of the sensors.
    pub whole: &'a Whole,
    /// SHA-256 of what the sensors sent, by their numbers, in hex digits: their audits have it.
    pub hashes: &'a [Option<String>],
}

#[derive(Serialize)]
struct ManifestJson<'a> {
    version: u16,
    made_ns: i64,
    made_by: &'a Maker,
    #[serde(flatten)]
    case: &'a CaseInfo,
    query: &'a str,
    request: Vec<ParameterJson<'a>>,
    complete: bool,
    state: &'static str,
    statement: Vec<String>,
    outputs: Vec<OutputForm>,
    sensors: Vec<SensorJson<'a>>,
}

#[derive(Serialize)]
struct ParameterJson<'a> {
    name: &'a str,
    value: &'a str,
}

/// What is said of a sensor, in an answer and in a manifest.
#[derive(Serialize)]
struct SensorJson<'a> {
    sensor: &'a str,
    condition: &'static str,
    state: &'static str,
    count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_sha256: Option<&'a str>,
}

impl<'a> SensorJson<'a> {
    fn new(part: &'a Part, hash: Option<&'a Option<String>>) -> Self {
        let condition = part.condition(false);
        Self {
            sensor: &part.sensor,
            condition: condition.name(),
            state: condition.state().name(),
            count: part.count,
            reasons: part.reasons(),
            sent_sha256: hash.and_then(Option::as_deref),
        }
    }
}

/// The manifest as JSON. It ends with a seal, signed if there is a key.
pub fn manifest_json(of: &Extracted<'_>, made_by: &Maker, key: Option<&SigningKey>) -> String {
    let sensors = of.whole.parts.iter().enumerate();
    let sensors = sensors.map(|(at, part)| SensorJson::new(part, of.hashes.get(at)));
    let statement = of.whole.to_string();
    let parameters = of.parameters.iter().map(|(name, value)| ParameterJson { name, value });
    let form = ManifestJson {
        version: MANIFEST_VERSION,
        made_ns: of.made.0,
        made_by,
        case: &of.case,
        query: of.query,
        request: parameters.collect(),
        complete: of.whole.state() == State::Complete,
        state: of.whole.state().name(),
        statement: statement.lines().map(str::to_owned).collect(),
        outputs: vec![OutputForm::new(of.file.clone(), &of.output)],
        sensors: sensors.collect(),
    };
    session_view::sealed_json(&form, key)
}
