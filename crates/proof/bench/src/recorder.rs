//! The recorder under measurement, driven as anyone would drive it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::program::{self, Run};

/// What a sender holds in memory, so that nothing is read meanwhile.
const SENDER_MEMORY: &str = "4G";

/// The program, and what is common to its runs.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    program: PathBuf,
    pub(crate) volume: PathBuf,
    pub(crate) index_dir: PathBuf,
}

/// A recording that has ended.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) run: Run,
    report: Value,
}

impl Recorder {
    pub(crate) fn new(given: Option<&Path>, volume: PathBuf, index_dir: PathBuf) -> Result<Self> {
        Ok(Self { program: program::wirespool(given)?, volume, index_dir })
    }

    /// Makes the volume, or makes it anew.
    pub(crate) fn create(&self, size: &str, options: &[&str]) -> Result<()> {
        // The index directory of the volume before is of no use to the next.
        drop(std::fs::remove_dir_all(&self.index_dir));
        let mut command = self.command("create");
        command.args(["--force", "--size", size]).args(options);
        program::run(&mut command).map(drop)
    }

    /// Records a file, or the captures below a directory; loss is an error, damaged captures are
    /// not.
    pub(crate) fn record(&self, input: &Path, options: &[&str]) -> Result<Recorded> {
        let mut command = self.command("record");
        command.arg("--read").arg(input).arg("--json").args(options).args(self.index_options());
        let run = program::run_up_to(&mut command, 1)?;
        let recorded = Recorded { report: run.json()?, run };
        let (offered, stored) = (recorded.count("offered")?, recorded.count("stored")?);
        ensure!(offered == stored, "{stored} of {offered} packets stored: nothing was measured");
        Ok(recorded)
    }

    /// The command that records what comes out of a pair.
    pub(crate) fn recording(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![(&self.program).into(), "record".into()];
        command.push((&self.volume).into());
        command.extend(["--interface", "right", "--json"].map(OsString::from));
        command.extend(self.index_options().map(OsString::from));
        command
    }

    /// The command that sends a file's packets into a pair.
    pub(crate) fn sending(&self, file: &Path) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![(&self.program).into(), "replay".into()];
        command.push(file.into());
        let options = ["--interface", "left", "--json", "--memory", SENDER_MEMORY];
        command.extend(options.map(OsString::from));
        command
    }

    /// Runs `find` or `extract`.
    pub(crate) fn ask(&self, verb: &str, arguments: &[&str]) -> Result<Run> {
        program::run(self.command(verb).args(self.index_options()).args(arguments))
    }

    /// What a warm `find` says it cost.
    pub(crate) fn cost(&self, query: &str) -> Result<Value> {
        let mut command = self.command("find");
        command.args(self.index_options()).args([query, "--json", "--explain"]);
        let said = command.output()?.stderr;
        serde_json::from_slice(&said).context("the cost of a query is not JSON")
    }

    fn index_options(&self) -> [&OsStr; 2] {
        ["--index-dir".as_ref(), self.index_dir.as_os_str()]
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb).arg(&self.volume);
        command
    }
}

impl Recorded {
    /// A counter of the report.
    pub(crate) fn count(&self, name: &str) -> Result<u64> {
        let value = self.report.get(name).and_then(Value::as_u64);
        value.with_context(|| format!("the recorder's report has no {name}"))
    }
}
