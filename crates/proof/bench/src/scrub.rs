//! Scrubbing a full volume, against `dd` of its members.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use units::number::real;

use crate::machine::{FileSystem, Workplace, settle};
use crate::mix;
use crate::outcome::Outcome;
use crate::program::{self, now_seconds};
use crate::recorder::Recorder;
use crate::statistics::Sample;

const GOAL: f64 = 0.95;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Where the mix is made: a directory in memory
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    #[command(flatten)]
    amount: mix::Amount,
    /// Members of the volume, of which two hold parity
    #[arg(long, default_value_t = 6)]
    members: u8,
    /// Size of each
    #[arg(long, default_value = "768M")]
    size: String,
    /// Recordings of the mix: as many as fill the ring
    #[arg(long, default_value_t = 4)]
    recordings: u32,
    /// Groups of scrub, dd, dd, scrub
    #[arg(long, default_value_t = 5)]
    groups: u32,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// One reading of the volume.
#[derive(Clone, Copy, Debug)]
struct Pass {
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Pass {
    fn rate(&self) -> f64 {
        real(self.bytes) / self.seconds
    }
}

/// Each side twice, in the order ABBA.
#[derive(Clone, Copy, Debug)]
struct Group {
    ours: [Pass; 2],
    dd: [Pass; 2],
}

impl Group {
    /// Bytes of both runs over the time of both.
    fn rate(passes: [Pass; 2]) -> f64 {
        let [first, second] = passes;
        real(first.bytes + second.bytes) / (first.seconds + second.seconds)
    }

    fn ratio(&self) -> f64 {
        Self::rate(self.ours) / Self::rate(self.dd)
    }
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.groups > 0 && options.members > 2, "a group at least, and three members");
    let place = Workplace::new(&options.directory)?;
    let member = |number: u8| place.path(&format!("member-{number}"));
    let members: Vec<PathBuf> = (0..options.members).map(member).collect();
    let recorder = Recorder::new(options.wirespool.as_deref(), member(0), place.path("index"))?;
    fill(options, &recorder, &members)?;
    settle()?;
    let program = program::wirespool(options.wirespool.as_deref())?;
    let ours = || ours(&program, &members);
    let dd = || dd(&members);
    // What is slow only once is out of the way.
    ours()?;
    let groups = (0..options.groups)
        .map(|_| {
            let (first, beside) = (ours()?, dd()?);
            let (beside_too, last) = (dd()?, ours()?);
            Ok(Group { ours: [first, last], dd: [beside, beside_too] })
        })
        .collect::<Result<Vec<Group>>>()?;
    report(options, &place, &groups)
}

/// A ring that is full, and has been for a while.
fn fill(options: &Options, recorder: &Recorder, members: &[PathBuf]) -> Result<()> {
    let others: Vec<String> =
        members.iter().skip(1).map(|path| path.display().to_string()).collect();
    let mut create = vec!["--parity", "2"];
    for path in &others {
        create.extend(["--member", path]);
    }
    recorder.create(&options.size, &create)?;
    let mix = options.memory.join(format!("wirespool-mix-{}.pcap", std::process::id()));
    mix::write(&mix, options.amount)?;
    let filled =
        (0..options.recordings).try_for_each(|_| recorder.record(&mix, &["--no-index"]).map(drop));
    std::fs::remove_file(&mix)?;
    filled
}

fn ours(program: &std::path::Path, members: &[PathBuf]) -> Result<Pass> {
    let first = members.first().context("a volume has members")?;
    let mut command = Command::new(program);
    let run = program::run(command.arg("scrub").arg(first).arg("--json"))?;
    let report = run.json()?;
    ensure!(report.get("clean") == Some(&Value::Bool(true)), "the volume is damaged");
    let bytes = report.get("bytes").and_then(Value::as_u64).context("the report has no bytes")?;
    Ok(Pass { bytes, seconds: run.seconds, cpu_seconds: run.cpu_seconds })
}

/// All members from end to end at once, each by a process of its own.
fn dd(members: &[PathBuf]) -> Result<Pass> {
    let start = now_seconds();
    let started: Vec<Child> = members
        .iter()
        .map(|member| {
            let mut command = Command::new("dd");
            command.arg(format!("if={}", member.display()));
            command.args(["of=/dev/null", "iflag=direct", "bs=2M", "status=none"]);
            command.stdin(Stdio::null()).spawn().context("cannot start dd")
        })
        .collect::<Result<_>>()?;
    for mut child in started {
        ensure!(child.wait()?.success(), "dd failed");
    }
    let seconds = now_seconds() - start;
    let sizes = members.iter().map(|member| std::fs::metadata(member).map(|found| found.len()));
    let bytes = sizes.sum::<Result<u64, _>>()?;
    Ok(Pass { bytes, seconds, cpu_seconds: 0.0 })
}

fn report(options: &Options, place: &Workplace, groups: &[Group]) -> Result<Outcome> {
    let mut outcome = Outcome::new("scrub: every byte of a full volume read and checked");
    let FileSystem { kind, device } = &place.file_system;
    let Options { members, size, .. } = options;
    outcome.line(format!(
        "{members} members of {size}, 2 of parity ({kind} on {device}); scrub, dd, dd, scrub; dd: \
         one process a member, all at once, iflag=direct bs=2M"
    ));
    outcome.line("  group  scrub MB/s  dd MB/s  ratio  CPU s/GB");
    for (number, group) in groups.iter().enumerate() {
        let [first, last] = group.ours;
        let cpu = (first.cpu_seconds + last.cpu_seconds) / (real(first.bytes + last.bytes) / 1e9);
        let (ours, dd) = (Group::rate(group.ours), Group::rate(group.dd));
        outcome.line(format!(
            "  {:5} {:11.0} {:8.0} {:6.2} {cpu:9.3}",
            number + 1,
            ours / 1e6,
            dd / 1e6,
            group.ratio(),
        ));
        let rates = |passes: [Pass; 2]| passes.map(|pass| pass.rate());
        outcome.push_json(
            "groups",
            json!({ "scrub_bytes_per_s": rates(group.ours), "dd_bytes_per_s": rates(group.dd),
                    "cpu_seconds_per_gb": cpu }),
        );
    }
    let ratio = Sample::new(groups.iter().map(Group::ratio))?;
    outcome.judge("bytes a second of the whole process, against dd", &ratio, GOAL);
    outcome.not_proven("a rate on several disks: all members lie on one");
    outcome.not_proven("a rate beside a recorder, which goes first");
    Ok(outcome)
}
