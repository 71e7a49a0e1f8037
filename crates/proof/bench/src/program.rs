//! Programs under measurement: how long one ran, how much processor time it took, what it said.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use host::SystemClock;
use serde_json::Value;
use units::{Clock, Sleep};

use units::number::real;

/// The kernel counts the processor time of children in these, whatever its own tick (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    /// From before it was started to after it ended.
    pub(crate) seconds: f64,
    /// Until the first byte of its standard output.
    pub(crate) first_byte_seconds: f64,
    /// User and system time, to 10 ms.
    pub(crate) cpu_seconds: f64,
    /// Pages that it came to without a disk.
    pub(crate) faults: u64,
    pub(crate) output: Vec<u8>,
}

impl Run {
    /// What it said, as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.output).context("the program's report is not JSON")
    }
}

/// Seconds since some moment in the past.
pub(crate) fn now_seconds() -> f64 {
    let now_ns = u64::try_from(SystemClock.boottime_ns()).expect("time since boot is positive");
    real(now_ns) / 1e9
}

/// Does nothing for a while.
pub(crate) fn wait(nanos: i64) {
    SystemClock.sleep_until(SystemClock.boottime_ns() + nanos);
}

/// Runs a program to its end and takes its standard output; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<Run> {
    run_up_to(command, 0)
}

/// As [`run`], with other exit codes that are taken: 1 is a negative verdict, after the work.
pub(crate) fn run_up_to(command: &mut Command, highest_code: i32) -> Result<Run> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (cpu_before, faults_before) = children()?;
    let start = now_seconds();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}; is it installed?"))?;
    let mut stdout = child.stdout.take().context("the program has no standard output")?;
    let (mut output, mut first) = (Vec::new(), [0]);
    let first_len = stdout.read(&mut first)?;
    let first_byte_seconds = now_seconds() - start;
    output.extend(first.iter().take(first_len));
    stdout.read_to_end(&mut output)?;
    // No program here writes more to standard error than a pipe holds.
    let ended = child.wait_with_output()?;
    let seconds = now_seconds() - start;
    if ended.status.code().is_none_or(|code| code > highest_code) {
        bail!("{name}: {}: {}", ended.status, String::from_utf8_lossy(&ended.stderr).trim());
    }
    let (cpu_after, faults_after) = children()?;
    let (cpu_seconds, faults) = (cpu_after - cpu_before, faults_after - faults_before);
    Ok(Run { seconds, first_byte_seconds, cpu_seconds, faults, output })
}

/// The recorder to measure: the one given, or the one built beside this program.
pub(crate) fn wirespool(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("wirespool"),
    };
    ensure!(
        path.is_file(),
        "no recorder at {}; build it (cargo build --release -p wirespool) or name it (--wirespool)",
        path.display()
    );
    let is_debug = path.parent().and_then(Path::file_name).is_some_and(|name| name == "debug");
    ensure!(!is_debug, "{} is a debug build; benchmarks measure release builds", path.display());
    Ok(path)
}

/// User and system time and minor faults of the children that have ended and were waited for.
fn children() -> Result<(f64, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let seconds = children_ticks(&stat).map(|ticks| real(ticks) / TICKS_PER_SECOND);
    seconds.zip(children_faults(&stat)).context("odd /proc/self/stat")
}

/// User and system time of the process that a line of stat is of.
pub(crate) fn own_cpu_seconds(stat: &str) -> Option<f64> {
    fields(stat, 11).map(|[user, system]| real(user + system) / TICKS_PER_SECOND)
}

/// Fields 16 and 17 of stat (proc(5)).
fn children_ticks(stat: &str) -> Option<u64> {
    fields(stat, 13).map(|[user, system]| user + system)
}

/// Field 11 of stat.
fn children_faults(stat: &str) -> Option<u64> {
    fields(stat, 8).map(|[minor]| minor)
}

/// Fields so far behind the name in brackets, which may hold anything.
fn fields<const COUNT: usize>(stat: &str, skipped: usize) -> Option<[u64; COUNT]> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let found = behind_name.split_whitespace().skip(skipped).take(COUNT);
    let found: Option<Vec<u64>> = found.map(|field| field.parse().ok()).collect();
    found?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_children_stand_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 30 4 20 0 1";
        assert_eq!((children_ticks(stat), children_faults(stat)), (Some(34), Some(8)));
        assert_eq!((fields(stat, 0), fields(stat, 1)), (None::<[u64; 1]>, Some([1, 2])));
        assert_eq!(children_ticks("7 (a"), None);
    }

    #[test]
    fn a_run_has_the_output_whole_and_a_failure_is_an_error() {
        let run = run(Command::new("printf").arg("%s").arg("[1, 2]")).unwrap();
        assert_eq!(run.json().unwrap(), serde_json::json!([1, 2]));
        assert!(run.seconds >= run.first_byte_seconds);
        assert!(super::run(&mut Command::new("false")).is_err());
        assert!(run_up_to(&mut Command::new("false"), 1).is_ok());
    }

    #[test]
    fn a_debug_build_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for (folder, is_taken) in [("debug", false), ("release", true)] {
            let path = directory.path().join(folder).join("wirespool");
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            assert!(wirespool(Some(&path)).is_err(), "it is not there yet");
            std::fs::write(&path, b"").unwrap();
            assert_eq!(wirespool(Some(&path)).is_ok(), is_taken);
        }
    }
}
