//! Files of qualifications, read again: docs/qualification.md has the schema.

use core::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::compare::Comparison;
use crate::report::Qualification;

/// Of the schema. Readers take files of this version; fields that they do not know are passed over.
pub const FILE_VERSION: u32 = 1;

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
                write!(f, "a qualification of version {found}; this program reads {FILE_VERSION}")
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
    Comparison(Comparison),
}

/// Reads what was written of a qualification or a comparison.
pub fn parse_qualify_report(text: &str) -> Result<QualifyReport, QualificationError> {
    #[derive(Deserialize)]
    struct KindJson {
        comparison: Option<IgnoredAny>,
    }
    let form = QualificationError::Form;
    let version = version_of(text).map_err(form)?;
    if version != FILE_VERSION {
        return Err(QualificationError::Version(version));
    }
    let kind: KindJson = serde_json::from_str(text).map_err(form)?;
    if kind.comparison.is_some() {
        return read_comparison(text).map(QualifyReport::Comparison).map_err(form);
    }
    let found = serde_json::from_str(text).map_err(form)?;
    Ok(QualifyReport::Qualification(Box::new(found)))
}

/// Reads what was written of a qualification.
pub fn parse_qualification(text: &str) -> Result<Qualification, QualificationError> {
    match parse_qualify_report(text)? {
        QualifyReport::Qualification(found) => Ok(*found),
        QualifyReport::Comparison(_) => Err(QualificationError::Comparison),
    }
}

/// The version that a file begins with, whatever else is in it.
fn version_of(text: &str) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct VersionJson {
        version: u32,
    }
    serde_json::from_str(text).map(|VersionJson { version }| version)
}

/// Reads a comparison, whatever its version.
fn read_comparison(text: &str) -> serde_json::Result<Comparison> {
    #[derive(Deserialize)]
    struct ReadJson {
        comparison: Comparison,
    }
    serde_json::from_str(text).map(|ReadJson { comparison }| comparison)
}
