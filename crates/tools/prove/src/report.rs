//! The report of a recording, as `record --json` wrote it.

use core::time::Duration;

use serde::Deserialize;

use crate::trial::Recorder;

/// What is needed of the report of a recording.
#[derive(Deserialize)]
struct RecordingRead {
    stored: u64,
    unindexed: u64,
    kernel_drops: u64,
    writer_drops: u64,
    ring_freezes: Option<u64>,
    write_latency_ns_max: u64,
    pool_columns: u64,
    pool_columns_used_max: u64,
    epoch: u32,
}

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
    let read: RecordingRead = serde_json::from_str(text).map_err(ReportError)?;
    Ok(Recorder {
        stored: read.stored,
        unindexed: read.unindexed,
        kernel_drops: read.kernel_drops,
        writer_drops: read.writer_drops,
        ring_freezes: read.ring_freezes,
        write_latency_ns_max: read.write_latency_ns_max,
        pool_columns: read.pool_columns,
        pool_columns_used_max: read.pool_columns_used_max,
        epoch: read.epoch,
        cpu,
    })
}
