//! Recording a file into a volume with an index, against what fio writes into the same file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use units::number::real;

use crate::machine::{FileSystem, Workplace, settle};
use crate::mix;
use crate::outcome::Outcome;
use crate::program;
use crate::recorder::Recorder;
use crate::statistics::Sample;

/// A run takes half a second to a second, and single ones differ by 15 %: each side of a pair is
/// the median of this many, taken in turns, so that what slows the machine for a while slows both.
const RUNS: usize = 5;
const WRITE_BYTES: u64 = 2 << 20;
/// The least that is acceptable; 0.9 is what the design aims at.
const GOAL: f64 = 0.5;
const GOAL_OF_DESIGN: f64 = 0.9;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure
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
    /// Size of the volume; a segment is at most 1/16 of it
    #[arg(long, default_value = "16G")]
    size: String,
    /// Pairs of recorder and fio
    #[arg(long, default_value_t = 5)]
    pairs: u32,
    /// Record without an index
    #[arg(long)]
    no_index: bool,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// Recordings beside runs of fio, the median of each.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ours: Ours,
    fio_rate: f64,
}

#[derive(Clone, Copy, Debug)]
struct Ours {
    member_bytes: u64,
    flushes: u64,
    index_bytes: u64,
    rows: u64,
    /// Of the whole process: mount, memory, threads, recording, closing.
    seconds: f64,
    /// Of the recording alone, by its own report; `closing_seconds` are its end, without packets.
    steady_seconds: f64,
    closing_seconds: f64,
    /// Before the recording.
    opening_seconds: f64,
    cpu_seconds: f64,
}

impl Ours {
    fn rate(&self) -> f64 {
        real(self.member_bytes) / self.seconds
    }

    /// Writes of fio that make as many bytes.
    fn writes(&self) -> u64 {
        self.member_bytes.div_ceil(WRITE_BYTES)
    }

    fn steady_rate(&self) -> f64 {
        real(self.member_bytes) / self.steady_seconds
    }
}

/// A file that is removed again when it was made here.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    made: bool,
}

impl Input {
    /// The capture that was given, or the mix, made in a directory in memory.
    pub(crate) fn new(given: Option<&Path>, memory: &Path, amount: mix::Amount) -> Result<Self> {
        let input = if let Some(path) = given {
            Self { path: path.to_owned(), made: false }
        } else {
            let path = memory.join(format!("wirespool-mix-{}.pcap", std::process::id()));
            mix::write(&path, amount)?;
            Self { path, made: true }
        };
        ensure!(
            FileSystem::of(&input.path)?.is_memory(),
            "the capture must lie in memory, not on a disk"
        );
        Ok(input)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.made {
            // No caller is left to take the error.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.pairs > 0, "at least one pair");
    let place = Workplace::new(&options.directory)?;
    let recorder =
        Recorder::new(options.wirespool.as_deref(), place.path("volume"), place.path("index"))?;
    let input = Input::new(options.mix.as_deref(), &options.memory, options.amount)?;
    let input_bytes = std::fs::metadata(&input.path)?.len();
    recorder.create(&options.size, &[])?;
    // fio needs the recorder's counts. The runs beforehand also warm what is warm later.
    let first = ours(options, &recorder, &input.path)?;
    let behind = std::fs::metadata(&recorder.volume)?.len();
    extend(&recorder.volume, first.writes())?;
    fio(&recorder, &first, behind)?;
    let pairs = (0..options.pairs)
        .map(|number| {
            let (mut ours_runs, mut fio_rates) = (Vec::new(), Vec::new());
            for turn in 0..2 * RUNS {
                // Pairs begin with one and the other; so do the turns of a pair: ABBA.
                if (turn.div_ceil(2) + usize::try_from(number)?).is_multiple_of(2) {
                    ours_runs.push(ours(options, &recorder, &input.path)?);
                } else {
                    fio_rates.push(fio(&recorder, &first, behind)?);
                }
            }
            let ours = median(ours_runs, Ours::rate);
            Ok(Pair { ours, fio_rate: median(fio_rates, |rate| *rate) })
        })
        .collect::<Result<Vec<Pair>>>()?;
    report(options, &place, input_bytes, &pairs)
}

/// The run in the middle.
fn median<T>(mut runs: Vec<T>, rate: impl Fn(&T) -> f64) -> T {
    runs.sort_by(|left, right| rate(left).total_cmp(&rate(right)));
    runs.swap_remove(runs.len() / 2)
}

fn ours(options: &Options, recorder: &Recorder, input: &Path) -> Result<Ours> {
    settle()?;
    let with: &[&str] = if options.no_index { &["--no-index"] } else { &[] };
    let report = recorder.record(input, with)?;
    let seconds = |name| report.count(name).map(|nanos| real(nanos) / 1e9);
    Ok(Ours {
        member_bytes: report.count("member_bytes")?,
        flushes: report.count("flushes")?,
        index_bytes: report.count("index_bytes")?,
        rows: report.count("sessions")?,
        seconds: report.run.seconds,
        steady_seconds: seconds("elapsed_ns")?,
        closing_seconds: seconds("closing_ns")?,
        opening_seconds: seconds("opening_ns")?,
        cpu_seconds: report.run.cpu_seconds,
    })
}

/// Makes the file longer by so many of fio's writes, and writes them all: fio must find its place
/// written like the volume's. The recorder never looks there.
fn extend(file: &Path, writes: u64) -> Result<()> {
    let mut command = Command::new("dd");
    command
        .args(["if=/dev/zero", "oflag=append,direct", "conv=notrunc", "status=none"])
        .arg(format!("bs={WRITE_BYTES}"))
        .arg(format!("count={writes}"))
        .arg(format!("of={}", file.display()));
    program::run(&mut command).map(drop)
}

/// Bytes a second by fio's own report, from its first write to its last sync. It writes into the
/// same file, behind the volume, over what it wrote before.
fn fio(recorder: &Recorder, ours: &Ours, behind: u64) -> Result<f64> {
    settle()?;
    let writes = ours.writes();
    let writes_a_sync = writes.div_ceil(ours.flushes.max(1));
    let mut command = Command::new("fio");
    command
        .args(["--name=peer", "--rw=write", "--ioengine=io_uring", "--iodepth=8", "--direct=1"])
        .args(["--overwrite=1", "--end_fsync=1", "--output-format=json"])
        .arg(format!("--bs={WRITE_BYTES}"))
        .arg(format!("--size={}", writes * WRITE_BYTES))
        .arg(format!("--offset={behind}"))
        .arg(format!("--fdatasync={writes_a_sync}"))
        .arg(format!("--filename={}", recorder.volume.display()));
    let report = program::run(&mut command)?.json()?;
    let write = report.pointer("/jobs/0/write").context("fio reports no job")?;
    let number = |name: &str| {
        write.get(name).and_then(Value::as_u64).with_context(|| format!("fio reports no {name}"))
    };
    ensure!(number("io_bytes")? == writes * WRITE_BYTES, "fio wrote something else");
    Ok(real(number("io_bytes")?) / (real(number("runtime")?) / 1e3))
}

fn report(
    options: &Options,
    place: &Workplace,
    input_bytes: u64,
    pairs: &[Pair],
) -> Result<Outcome> {
    let index = if options.no_index { "without an index" } else { "with an index" };
    let mut outcome = Outcome::new("ingest: a capture in memory into a volume on a disk");
    let FileSystem { kind, device } = &place.file_system;
    outcome.line(format!(
        "{} MB recorded {index} into a volume of {} ({kind} on {device}), in turns, medians of \
         {RUNS}",
        input_bytes / 1_000_000,
        options.size
    ));
    outcome.line(
        "  pair  ours MB/s  recording alone  fio MB/s  ratio  open, close ms  CPU s/GB  flushes    \
         rows",
    );
    let gigabytes = real(input_bytes) / 1e9;
    for (number, Pair { ours, fio_rate }) in pairs.iter().enumerate() {
        outcome.line(format!(
            "  {:4} {:10.0} {:16.0} {:9.0} {:6.2} {:8.0} {:6.0} {:9.2} {:8} {:7}",
            number + 1,
            ours.rate() / 1e6,
            ours.steady_rate() / 1e6,
            fio_rate / 1e6,
            ours.rate() / fio_rate,
            ours.opening_seconds * 1e3,
            ours.closing_seconds * 1e3,
            ours.cpu_seconds / gigabytes,
            ours.flushes,
            ours.rows,
        ));
        outcome.push_json(
            "pairs",
            json!({
                "member_bytes": ours.member_bytes, "seconds": ours.seconds,
                "opening_seconds": ours.opening_seconds,
                "recording_seconds": ours.steady_seconds,
                "closing_seconds": ours.closing_seconds, "cpu_seconds": ours.cpu_seconds,
                "flushes": ours.flushes, "rows": ours.rows, "index_bytes": ours.index_bytes,
                "fio_bytes_per_s": fio_rate,
            }),
        );
    }
    outcome.json("input_bytes", input_bytes);
    let ratio = Sample::new(pairs.iter().map(|pair| pair.ours.rate() / pair.fio_rate))?;
    outcome.judge("bytes to the member a second, whole process, against fio", &ratio, GOAL);
    let steady = Sample::new(pairs.iter().map(|pair| pair.ours.steady_rate() / pair.fio_rate))?;
    outcome.judge("the same from the first packet on", &steady, GOAL_OF_DESIGN);
    let cpu = Sample::new(pairs.iter().map(|pair| pair.ours.cpu_seconds / gigabytes))?;
    outcome.line(format!(
        "CPU seconds a GB of capture, user and system: {:.2}, spread {:.0} %",
        cpu.median(),
        cpu.spread() * 100.0
    ));
    outcome.json("cpu_seconds_per_gb", cpu.median());
    outcome.not_proven(
        "a rate without loss from a network: a file waits for the disk, a link does not",
    );
    outcome
        .not_proven("a rate over hours or a full ring: the file is written once, from its start");
    Ok(outcome)
}
