//! What fio says of a run, in its JSON.

use serde::Deserialize;

use crate::report::FioRun;

#[derive(Deserialize)]
struct FioJson {
    #[serde(rename = "fio version")]
    version: String,
    jobs: Vec<JobJson>,
}

#[derive(Deserialize)]
struct JobJson {
    write: DirectionJson,
}

/// `runtime` is in milliseconds, of the job that took longest where they are reported as a group.
#[derive(Deserialize)]
struct DirectionJson {
    io_bytes: u64,
    runtime: u64,
}

/// The writes of all jobs of a report with `--output-format=json`; what stands before it, such as
/// warnings, is passed over.
pub fn parse_fio(text: &str) -> Result<FioRun, serde_json::Error> {
    let begin = text.find('{').unwrap_or(0);
    let report: FioJson = serde_json::from_str(text.get(begin..).unwrap_or(text))?;
    let bytes = report.jobs.iter().map(|job| job.write.io_bytes).sum();
    let longest = report.jobs.iter().map(|job| job.write.runtime).max().unwrap_or(0);
    Ok(FioRun { version: report.version, bytes, ns: longest.saturating_mul(1_000_000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_are_those_of_the_writes() {
        let text = r#"note: something
        {"fio version": "fio-3.33", "jobs": [
            {"jobname": "recorder", "read": {"io_bytes": 5, "runtime": 9},
             "write": {"io_bytes": 4194304, "bw": 1, "runtime": 20}}]}"#;
        let found = parse_fio(text).unwrap();
        assert_eq!((found.bytes, found.ns, found.rate()), (4 << 20, 20_000_000, 209_715_200));
        assert!(parse_fio("fio: not a job").is_err());
    }
}
