//! `top` beside a recorder, against iftop and bandwhich.
//!
//! A mix of 100 000 flows at a given rate goes through a veth pair; a recorder and one of the
//! programs listen at its other end, on the same processor. What counts is the program's share of
//! that processor, and that the recorder loses nothing for it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use host::{Program, TemporaryDirectory};
use serde_json::{Value, json};
use units::NANOS_PER_SECOND;
use units::number::real;

use crate::mix;
use crate::outcome::Outcome;
use crate::pair::Pair;
use crate::program::{self, wait};
use crate::recorder::Recorder;
use crate::statistics::Sample;

/// Until a program listens.
const START_NS: i64 = 3 * NANOS_PER_SECOND / 2;
const STOP_MAX: Duration = Duration::from_secs(20);
const VOLUME: &str = "24G";
/// Half of one processor.
const GOAL: f64 = 0.5;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Packets a second
    #[arg(long, default_value_t = 500_000)]
    pps: u32,
    /// How long packets are sent in a run, in seconds
    #[arg(long, default_value_t = 6)]
    seconds: u32,
    /// Rounds, in each of which every program has one run
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Where the recorder writes
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The program to measure instead of the one beside this one
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// Who watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watcher {
    Nobody,
    Top,
    Iftop,
    Bandwhich,
}

impl Watcher {
    const ALL: [Self; 4] = [Self::Nobody, Self::Top, Self::Iftop, Self::Bandwhich];

    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Top => "wirespool top",
            Self::Iftop => "iftop",
            Self::Bandwhich => "bandwhich",
        }
    }
}

struct Stage {
    pair: Pair,
    /// Where what the recorder and the watcher say is kept.
    folders: [TemporaryDirectory; 2],
    recorder: Recorder,
    wirespool: PathBuf,
    load: PathBuf,
    dir: PathBuf,
    options: Options,
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Of one processor, by who watches.
    share: f64,
    /// Of the packets offered, that the recorder stored.
    stored: f64,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.rounds > 0 && options.seconds > 0, "a round and a second at least");
    let stage = Stage::new(options)?;
    let mut outcome = Outcome::new("Who talks, beside a recorder");
    let mut all = Watcher::ALL.map(|watcher| (watcher, Vec::new()));
    for _ in 0..options.rounds {
        for (watcher, runs) in &mut all {
            if stage.is_there(*watcher) {
                runs.push(stage.run(*watcher)?);
            }
        }
    }
    for (watcher, runs) in &all {
        if runs.is_empty() {
            outcome.line(format!("{}: not installed", watcher.name()));
            continue;
        }
        tell(&mut outcome, *watcher, runs)?;
    }
    outcome.not_proven("a real card: the sender of a pair pays for what the kernel copies");
    Ok(outcome)
}

impl Stage {
    fn new(options: &Options) -> Result<Self> {
        let count = std::thread::available_parallelism()?.get();
        ensure!(count > 1, "the sender needs a processor of its own");
        let folder = || TemporaryDirectory::new("wirespool-bench");
        let dir = options.dir.join(format!("bench-top-{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let load = dir.join("load.pcap");
        let packets = options.pps.saturating_mul(options.seconds);
        mix::write(&load, mix::Amount { packets, flows: 100_000, traffic: false })?;
        let (volume, index_dir) = (dir.join("volume"), dir.join("index"));
        Ok(Self {
            pair: Pair::new()?,
            recorder: Recorder::new(options.wirespool.as_deref(), volume, index_dir)?,
            wirespool: program::wirespool(options.wirespool.as_deref())?,
            options: options.clone(),
            folders: [folder()?, folder()?],
            load,
            dir,
        })
    }

    fn is_there(&self, watcher: Watcher) -> bool {
        let asked = |name: &str| {
            let found = program::run(self.pair.program("which").arg(name));
            found.is_ok()
        };
        !matches!(watcher, Watcher::Iftop | Watcher::Bandwhich) || asked(watcher.name())
    }

    /// A program in the namespace, away from the sender's processor.
    fn start(&self, words: Vec<OsString>, folder: &TemporaryDirectory) -> Result<Program> {
        let mut arguments = self.pair.entering().to_vec();
        arguments.extend(["taskset", "-c", "1"].map(OsString::from));
        arguments.extend(words);
        Ok(Program::start(Path::new("ip"), &arguments, folder.path())?)
    }

    fn watch(&self, watcher: Watcher) -> Result<Option<Program>> {
        let seconds = (self.options.seconds + 4).to_string();
        let [_, folder] = &self.folders;
        let line = match watcher {
            Watcher::Nobody => return Ok(None),
            Watcher::Top => {
                // On a terminal, as people use it; it asks what passed once a second.
                let ours = self.wirespool.display();
                let words = ["script", "-qec", &format!("{ours} top right"), "/dev/null"];
                return self.start(words.map(OsString::from).into(), folder).map(Some);
            }
            Watcher::Iftop => format!("iftop -t -s {seconds} -L 20 -n -N -P -i right"),
            Watcher::Bandwhich => "bandwhich --raw --no-resolve --interface right".to_owned(),
        };
        self.start(line.split(' ').map(OsString::from).collect(), folder).map(Some)
    }

    fn run(&self, watcher: Watcher) -> Result<Seen> {
        drop(fs::remove_file(&self.recorder.volume));
        self.recorder.create(VOLUME, &["--sparse"])?;
        let [folder, _] = &self.folders;
        let recording = self.start(self.recorder.recording(), folder)?;
        let watching = self.watch(watcher)?;
        wait(START_NS);
        let sent = self.send()?;
        wait(NANOS_PER_SECOND);
        let cpu_of_top = self.cpu_seconds_of_top()?;
        recording.interrupt();
        let recorded = recording.wait(STOP_MAX)?;
        let stored = count(&serde_json::from_str(&recorded.output)?, "stored")?;
        let ended = watching
            .map(|program| {
                // iftop ends by itself.
                if watcher != Watcher::Iftop {
                    program.interrupt();
                }
                program.wait(STOP_MAX)
            })
            .transpose()?;
        let cpu = match watcher {
            Watcher::Top => cpu_of_top,
            _ => ended.as_ref().map_or(0.0, |ended| ended.cpu.total().as_secs_f64()),
        };
        Ok(Seen { share: cpu / f64::from(self.options.seconds), stored: real(stored) / real(sent) })
    }

    /// Of `top`, while it runs: its terminal does not wait for it.
    fn cpu_seconds_of_top(&self) -> Result<f64> {
        let name = format!("{}\0top\0", self.wirespool.display());
        let entries = fs::read_dir("/proc")?.flatten().map(|entry| entry.path());
        let is_top = |path: &PathBuf| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            line.starts_with(name.as_bytes())
        };
        let Some(top) = entries.filter(is_top).last() else { return Ok(0.0) };
        let stat = fs::read_to_string(top.join("stat"))?;
        program::own_cpu_seconds(&stat).context("odd stat of a process")
    }

    /// Sends everything on the first processor; how many packets that were.
    fn send(&self) -> Result<u64> {
        let mut command = self.pair.program("taskset");
        command.args(["-c", "0"]).args(self.recorder.sending(&self.load));
        command.args(["--pps", &self.options.pps.to_string()]);
        count(&program::run(&mut command)?.json()?, "packets")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed the user finds in the directory that was named.
        drop(fs::remove_dir_all(&self.dir));
    }
}

fn count(report: &Value, name: &str) -> Result<u64> {
    let value = report.get(name).and_then(Value::as_u64);
    value.with_context(|| format!("a report has no {name}"))
}

fn tell(outcome: &mut Outcome, watcher: Watcher, runs: &[Seen]) -> Result<()> {
    let of = |value: fn(&Seen) -> f64| Sample::new(runs.iter().map(value));
    let stored = of(|run| run.stored)?;
    let name = watcher.name();
    let lost = (1.0 - stored.median()) * 100.0;
    let cost = if watcher == Watcher::Nobody {
        String::new()
    } else {
        let share = of(|run| run.share)?;
        let (median, spread) = (share.median() * 100.0, share.spread() * 100.0);
        format!("{median:5.1} % of a core (spread {spread:.0} %); ")
    };
    outcome.line(format!("{name:13}: {cost}the recorder lost {lost:.3} %"));
    let each: Vec<Value> =
        runs.iter().map(|run| json!({ "share": run.share, "stored": run.stored })).collect();
    outcome.push_json("watchers", json!({ "name": name, "runs": each }));
    if watcher == Watcher::Top {
        let room = Sample::new(runs.iter().map(|run| GOAL / run.share.max(f64::MIN_POSITIVE)))?;
        outcome.judge("half a core over that of top", &room, 1.0);
        outcome.judge("stored by the recorder beside top", &stored, 1.0);
    }
    Ok(())
}
