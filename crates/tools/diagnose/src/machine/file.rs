//! Facts of a machine that were saved, read again.

use observe::facts::Facts;
use serde::Deserialize;

/// Of the file.
pub const FACTS_VERSION: u32 = 1;

#[derive(Deserialize)]
struct VersionJson {
    version: u32,
}

#[derive(Deserialize)]
struct FactsJson {
    facts: Facts,
}

/// Why a file has no facts.
#[derive(Debug)]
pub enum FactsError {
    /// It is something else.
    Other(serde_json::Error),
    /// It was written by a later program.
    Version(u32),
}

impl core::fmt::Display for FactsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Other(error) => {
                write!(f, "no facts of a machine (diagnose host --save writes them): {error}")
            }
            Self::Version(version) => {
                write!(f, "facts of version {version}; this program knows {FACTS_VERSION}")
            }
        }
    }
}

impl core::error::Error for FactsError {}

/// Reads what was written of a machine.
pub fn parse_facts(text: &str) -> Result<Facts, FactsError> {
    // Before the facts, which another version may have in another form.
    let VersionJson { version } = serde_json::from_str(text).map_err(FactsError::Other)?;
    match version {
        FACTS_VERSION => {}
        version => return Err(FactsError::Version(version)),
    }
    let read: FactsJson = serde_json::from_str(text).map_err(FactsError::Other)?;
    Ok(read.facts)
}
