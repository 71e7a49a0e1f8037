//! A qualification as JSON, and back: docs/qualification.md has the schema.

use core::fmt;

use ::qualify::{self as q, Qualification};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::safe::json_pretty;

/// Of the schema. Readers take files of this version; fields that they do not know are passed over.
const VERSION: u32 = 1;

mod compare;

pub use compare::comparison_json;

/// The first fields are those that a script asks for; they repeat the verdict.
#[derive(Serialize)]
struct QualificationJson<'a> {
    version: u32,
    guaranteed_bytes_per_s: Option<u64>,
    mean_bytes_per_s: Option<u64>,
    minimum_bytes_per_s: Option<u64>,
    guaranteed_traffic_bit_per_s: Option<u64>,
    #[serde(flatten)]
    found: &'a Qualification,
    /// What follows from the parts, beside what the disk claims: computed anew by every reader.
    seen: q::Seen,
}

/// A qualification, as JSON.
pub fn qualification_json(found: &Qualification) -> String {
    let first = found.verdict.as_ref().and_then(|verdict| verdict.judged.first());
    let traffic = found.verdict.as_ref().map(|verdict| verdict.guaranteed_traffic_bit_per_s);
    json_pretty(&QualificationJson {
        version: VERSION,
        guaranteed_bytes_per_s: first.map(|judged| judged.guaranteed_bytes_per_s),
        mean_bytes_per_s: first.map(|judged| judged.mean_bytes_per_s),
        minimum_bytes_per_s: first.map(|judged| judged.minimum_bytes_per_s),
        guaranteed_traffic_bit_per_s: traffic,
        found,
        seen: q::seen(&found.parts),
    })
}

/// The text is no qualification.
#[derive(Debug)]
pub enum QualificationError {
    /// Not JSON, or without the fields of one.
    Form(serde_json::Error),
    /// Written by another version of the program.
    Version(u32),
    /// A comparison of several targets.
    Comparison,
}

impl fmt::Display for QualificationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(error) => write!(f, "not the file of a qualification: {error}"),
            Self::Version(found) => {
                write!(f, "a qualification of version {found}; this program reads {VERSION}")
            }
            Self::Comparison => f.write_str("a comparison, and no report of one target"),
        }
    }
}

impl core::error::Error for QualificationError {}

/// What a report is of.
#[derive(Clone, PartialEq, Debug)]
pub enum QualifyReport {
    /// One target.
    Qualification(Box<Qualification>),
    /// Several.
    Comparison(q::Comparison),
}

/// Reads what [`qualification_json`] or [`comparison_json`] wrote.
pub fn parse_qualify_report(text: &str) -> Result<QualifyReport, QualificationError> {
    #[derive(Deserialize)]
    struct KindJson {
        comparison: Option<IgnoredAny>,
    }
    let form = QualificationError::Form;
    let version = crate::version_of(text).map_err(form)?;
    if version != VERSION {
        return Err(QualificationError::Version(version));
    }
    let kind: KindJson = serde_json::from_str(text).map_err(form)?;
    if kind.comparison.is_some() {
        return compare::read_comparison(text).map(QualifyReport::Comparison).map_err(form);
    }
    let found = serde_json::from_str(text).map_err(form)?;
    Ok(QualifyReport::Qualification(Box::new(found)))
}

/// Reads what [`qualification_json`] wrote.
pub fn parse_qualification(text: &str) -> Result<Qualification, QualificationError> {
    match parse_qualify_report(text)? {
        QualifyReport::Qualification(found) => Ok(*found),
        QualifyReport::Comparison(_) => Err(QualificationError::Comparison),
    }
}
