//! What it costs that the indexer is a process of its own: the same capture recorded by the
//! installed recorder, and by this program with the indexer as a thread of it, in turns.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use core::ops::{AddAssign, ControlFlow};

use anyhow::{Context, Result, ensure};
use host::SystemClock;
use indexer::{InThread, Workers};
use record::{Input, record};
use serde_json::json;
use units::number::real;

use crate::ingest;
use crate::machine::{Workplace, settle};
use crate::mix;
use crate::outcome::Outcome;
use crate::program::{self, Run};
use crate::recorder::Recorder;
use crate::statistics::Sample;

/// The two processes may take so much more.
const GOAL: f64 = 1.03;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory for the volume
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// A capture to record, in memory (tmpfs); without it the mix is made there
    #[arg(long)]
    mix: Option<PathBuf>,
    /// Where the mix is made: a directory in memory
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    #[command(flatten)]
    amount: mix::Amount,
    /// Size of the volume
    #[arg(long, default_value = "4G")]
    size: String,
    /// Pairs, each of two recordings of either kind
    #[arg(long, default_value_t = 10)]
    pairs: u32,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// A recording in one process: this one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Alone {
    volume: PathBuf,
    input: PathBuf,
    index_dir: PathBuf,
}

/// Records in this process, and prints what the other recorder prints of it.
pub(crate) fn alone(alone: Alone) -> Result<()> {
    let defaults = record::Options::new(alone.volume, Input::Files(vec![alone.input]));
    let options = record::Options {
        index_dir: Some(alone.index_dir),
        workers: Workers::new(Arc::new(InThread)),
        ..defaults
    };
    let report = record(&options, &SystemClock, &mut |_| ControlFlow::Continue(()))?;
    ensure!(report.total.stored == report.total.offered, "packets were lost");
    let said = json!({ "stored": report.total.stored, "sessions": report.rows });
    std::io::stdout().write_all(said.to_string().as_bytes())?;
    Ok(())
}

/// Processor seconds and page faults of a recording, or of two.
#[derive(Clone, Copy, Default)]
struct Cost {
    seconds: f64,
    faults: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.faults += other.faults;
    }
}

/// Two recordings of either kind.
#[derive(Default)]
struct Pair {
    one: Cost,
    two: Cost,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.pairs > 0, "at least one pair");
    let place = Workplace::new(&options.directory)?;
    let recorder =
        Recorder::new(options.wirespool.as_deref(), place.path("volume"), place.path("index"))?;
    let made = ingest::Input::new(options.mix.as_deref(), &options.memory, options.amount)?;
    let input = &made.path;
    recorder.create(&options.size, &[])?;
    let rows = [two(&recorder, input)?.1, one(&recorder, input)?.1];
    // Where segments are cut depends on time, and a session has a row in each.
    ensure!(rows[0].abs_diff(rows[1]) * 50 < rows[0], "both find the same sessions: {rows:?}");
    let pairs = (0..options.pairs)
        .map(|_| {
            let mut pair = Pair::default();
            for turn in 0..4 {
                // ABBA: what changes slowly concerns both.
                if turn == 0 || turn == 3 {
                    pair.one += one(&recorder, input)?.0;
                } else {
                    pair.two += two(&recorder, input)?.0;
                }
            }
            Ok(pair)
        })
        .collect::<Result<Vec<Pair>>>()?;
    report(std::fs::metadata(input)?.len(), &pairs)
}

/// What a recording in one process costs, and its rows.
fn one(recorder: &Recorder, input: &Path) -> Result<(Cost, u64)> {
    settle()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("alone").arg(&recorder.volume).arg(input).arg(&recorder.index_dir);
    let run = program::run(&mut command)?;
    let said = run.json()?;
    let rows = said.get("sessions").and_then(serde_json::Value::as_u64);
    Ok((cost(&run), rows.context("it says how many sessions it found")?))
}

/// The same of one in two processes, all that it starts included.
fn two(recorder: &Recorder, input: &Path) -> Result<(Cost, u64)> {
    settle()?;
    let done = recorder.record(input, &[])?;
    Ok((cost(&done.run), done.count("sessions")?))
}

fn cost(run: &Run) -> Cost {
    Cost { seconds: run.cpu_seconds, faults: run.faults }
}

fn report(input_bytes: u64, pairs: &[Pair]) -> Result<Outcome> {
    let mut outcome = Outcome::new("processes: the indexer as a process against one as a thread");
    let gigabytes = 2.0 * real(input_bytes) / 1e9;
    outcome.line(format!("{} MB, recordings in turns, ABBA", input_bytes / 1_000_000));
    outcome.line("  pair  one process CPU s/GB, faults  two processes CPU s/GB, faults  ratio");
    for (number, Pair { one, two }) in pairs.iter().enumerate() {
        let seconds = [one, two].map(|cost| cost.seconds / gigabytes);
        outcome.line(format!(
            "  {:4} {:21.3} {:8} {:23.3} {:8} {:6.3}",
            number + 1,
            seconds[0],
            one.faults / 2,
            seconds[1],
            two.faults / 2,
            two.seconds / one.seconds
        ));
        outcome.push_json(
            "pairs",
            json!({ "one_cpu_s_per_gb": seconds[0], "two_cpu_s_per_gb": seconds[1],
                    "one_faults": one.faults / 2, "two_faults": two.faults / 2 }),
        );
    }
    let ratio = Sample::new(pairs.iter().map(|pair| pair.two.seconds / pair.one.seconds))?;
    let seconds: Vec<_> = pairs.iter().map(|pair| (pair.one.seconds, pair.two.seconds)).collect();
    let effect = statistics::paired(&seconds).context("processor time was measured")?;
    outcome.line(format!(
        "two processes take {:.3} of the processor time of one, spread {:.1} %; {:.0} % \
         confidence: {:.3} to {:.3} (Wilcoxon's signed ranks, around {:.3})",
        ratio.median(),
        ratio.spread() * 100.0,
        effect.confidence * 100.0,
        effect.low,
        effect.high,
        effect.ratio
    ));
    let shares = ratio.map(|ratio| GOAL / ratio)?;
    outcome.judge("1.03 of one process, over what two take", &shares, 1.0);
    outcome.not_proven("what it costs on a link: a file never waits, and batches are full");
    Ok(outcome)
}
