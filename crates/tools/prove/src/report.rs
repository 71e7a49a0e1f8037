//! The report of a recording, as `record --json` wrote it.

use core::time::Duration;

use crate::trial::Recorder;

/// The text is no report of a recording.
#[derive(Debug)]
pub struct ReportError(serde_json::Error);

impl core::fmt::Display for ReportError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "not the report of a recording: {}", self.0)
    }
}

impl core::error::Error for ReportError {}

/// Reads what `record --json` wrote. `cpu` is the processor time of that process.
pub fn parse_recording(text: &str, cpu: Duration) -> Result<Recorder, ReportError> {
    let read: Recorder = serde_json::from_str(text).map_err(ReportError)?;
    Ok(Recorder { cpu, ..read })
}
