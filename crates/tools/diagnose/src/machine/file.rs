//! Facts of a machine as they are saved, and read again.

use std::borrow::Cow;

use observe::facts::Facts;
use serde::{Deserialize, Serialize};

/// Of the file.
pub const FACTS_VERSION: u32 = 1;

/// The file, in JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedFacts<'a> {
    version: u32,
    facts: Cow<'a, Facts>,
}

impl<'a> SavedFacts<'a> {
    /// A file of these.
    pub fn of(facts: &'a Facts) -> Self {
        Self { version: FACTS_VERSION, facts: Cow::Borrowed(facts) }
    }
}

/// What files of all versions have.
#[derive(Deserialize)]
struct Version {
    version: u32,
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
    let Version { version } = serde_json::from_str(text).map_err(FactsError::Other)?;
    match version {
        FACTS_VERSION => {}
        version => return Err(FactsError::Version(version)),
    }
    let read: SavedFacts<'_> = serde_json::from_str(text).map_err(FactsError::Other)?;
    Ok(read.facts.into_owned())
}
