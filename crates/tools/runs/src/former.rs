//! Runs of another day, read from a file.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

use crate::run::{Subject, Unit};

/// What a file says of a command or figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Former {
    /// What it was called.
    pub name: String,
    /// What its values are.
    pub unit: Unit,
    /// In that unit.
    pub values: Vec<f64>,
}

impl Former {
    /// Whether it is of the same command or figure, in the same unit.
    pub fn is_of(&self, subject: &Subject) -> bool {
        self.name == subject.name && self.unit == subject.unit
    }
}

/// Why a file has no runs.
#[derive(Debug)]
pub enum FormerError {
    /// It has another form.
    Form(serde_json::Error),
    /// Its values are in a unit that is not known.
    Unit(String),
}

impl core::fmt::Display for FormerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Form(error) => write!(f, "no runs of bench or hyperfine: {error}"),
            Self::Unit(unit) => write!(f, "runs in {unit:?}, which this program does not know"),
        }
    }
}

impl core::error::Error for FormerError {}

/// What is read of a file.
#[derive(Deserialize)]
struct Results {
    results: Vec<Told>,
}

/// What both programs tell of a command.
#[derive(Deserialize)]
struct Told {
    command: String,
    /// hyperfine has none: its times are seconds.
    unit: Option<String>,
    times: Vec<f64>,
}

/// Reads what `--export-json` wrote, ours or hyperfine's.
pub fn parse_former(text: &str) -> Result<Vec<Former>, FormerError> {
    let file: Results = serde_json::from_str(text).map_err(FormerError::Form)?;
    let former = |told: Told| {
        let unit = told.unit.map_or(Ok(Unit::Nanoseconds), |name| {
            let known: Result<Unit, ValueError> =
                Unit::deserialize(name.as_str().into_deserializer());
            known.map_err(|_| FormerError::Unit(name))
        })?;
        let scale = if unit == Unit::Nanoseconds { 1e9 } else { 1.0 };
        let values = told.times.into_iter().map(|value| value * scale).collect();
        Ok(Former { name: told.command, unit, values })
    };
    file.results.into_iter().map(former).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hyperfine_are_read() {
        let text = r#"{"results": [{"command": "sleep 0.01", "mean": 0.0115, "stddev": 0.0001,
            "median": 0.0115, "user": 0.0005, "system": 0.0007, "min": 0.0114, "max": 0.0116,
            "times": [0.0114, 0.0116], "memory_usage_byte": [1, 2], "exit_codes": [0, 0]}]}"#;
        let found = parse_former(text).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].unit), ("sleep 0.01", Unit::Nanoseconds));
        assert!((found[0].values[1] - 11.6e6).abs() < 1e-3, "{found:?}");
        assert!(parse_former("{}").unwrap_err().to_string().contains("no runs of bench"));
        let strange = r#"{"results": [{"command": "a", "unit": "apples", "times": []}]}"#;
        assert!(parse_former(strange).unwrap_err().to_string().contains("apples"));
    }
}
