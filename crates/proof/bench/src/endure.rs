//! Recording for long, round and round: whether anything is lost, grows, or slows down.
//!
//! The mix is replayed at a steady rate until the time is over, with other addresses in each loop,
//! so that sessions are always new. The rate of a lap is that of what the recorder gave the kernel
//! to write; as nothing is lost at a steady rate, it falls only where writing could not follow.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use host::{Program, SystemClock, TemporaryDirectory};
use serde_json::{Value, json};
use units::number::real;
use units::{ByteSize, Clock, NANOS_PER_SECOND};

use crate::mix;
use crate::outcome::Outcome;
use crate::pair::Pair;
use crate::program::wait;
use crate::recorder::Recorder;
use crate::statistics::Sample;

/// Between two looks at the recorder.
const LOOK_NS: i64 = NANOS_PER_SECOND / 4;
const START_NS: i64 = 3 * NANOS_PER_SECOND / 2;
const STOP_MAX: Duration = Duration::from_mins(1);
/// The last lap's rate over the first one's, at least.
const LAST_LAP: f64 = 0.95;
const LAPS: f64 = 20.0;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Gigabits of frames a second; take 80 % of what `wirespool prove --find-limit` finds
    #[arg(long)]
    gbit: f64,
    /// How long
    #[arg(long, default_value_t = 30)]
    minutes: u32,
    /// Size of the volume
    #[arg(long, default_value = "8G")]
    size: ByteSize,
    /// Memory for packets that the disk has not taken yet; what `qualify` says of the disk
    /// [default: the recorder's]
    #[arg(long)]
    pool: Option<ByteSize>,
    /// Flows of the mix
    #[arg(long, default_value_t = 100_000)]
    flows: u32,
    /// Packets of the mix
    #[arg(long, default_value_t = 1_500_000)]
    packets: u32,
    /// Where the volume is made
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Kill the recorder's indexer this often, in milliseconds
    #[arg(long, value_name = "MS")]
    kill_indexer: Option<u32>,
    /// The program to measure instead of the one beside this one
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// The recorder at one moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: i64,
    written_bytes: u64,
    memory_bytes: u64,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let dir = options.dir.join(format!("bench-endure-{}", std::process::id()));
    fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let outcome = run_in(&dir, options);
    // What cannot be removed the user finds in the directory that was named.
    drop(fs::remove_dir_all(&dir));
    outcome
}

fn run_in(dir: &Path, options: &Options) -> Result<Outcome> {
    let file = dir.join("mix.pcap");
    mix::write(
        &file,
        mix::Amount { packets: options.packets, flows: options.flows, traffic: false },
    )?;
    let given = options.wirespool.as_deref();
    let recorder = Recorder::new(given, dir.join("volume"), dir.join("index"))?;
    recorder.create(&options.size.0.to_string(), &[])?;
    let pair = Pair::new()?;
    let folders = [TemporaryDirectory::new("recorder")?, TemporaryDirectory::new("sender")?];
    let [for_recorder, for_sender] = &folders;
    let inside = |command: Vec<OsString>, folder: &TemporaryDirectory| {
        let mut arguments = pair.entering().to_vec();
        arguments.extend(command);
        Program::start(Path::new("ip"), &arguments, folder.path())
    };
    let recording = inside(recording(&recorder, options.pool), for_recorder)?;
    wait(START_NS);
    let sending = inside(sending(&recorder, &file, options.gbit), for_sender)?;
    let looks = watch(&recording, options)?;
    sending.interrupt();
    let sent = sending.wait(STOP_MAX)?;
    recording.interrupt();
    let stored = recording.wait(STOP_MAX)?;
    let parse = |text: &str, errors: &str| -> Result<Value> {
        serde_json::from_str(text).with_context(|| format!("it said: {}", errors.trim()))
    };
    let sent = parse(&sent.output, &sent.errors)?;
    let stored = parse(&stored.output, &stored.errors)?;
    report(options, &looks, (&sent, &stored))
}

fn recording(recorder: &Recorder, pool: Option<ByteSize>) -> Vec<OsString> {
    let mut command = recorder.recording();
    if let Some(pool) = pool {
        command.extend(["--pool".into(), pool.0.to_string().into()]);
    }
    command
}

fn sending(recorder: &Recorder, file: &Path, gbit: f64) -> Vec<OsString> {
    let mut command = recorder.sending(file);
    command.extend(["--loops", "0", "--unique", "--gbit"].map(OsString::from));
    command.push(gbit.to_string().into());
    command
}

/// Looks at the recorder until the time is over, and kills its indexers if that is wished.
fn watch(recording: &Program, options: &Options) -> Result<Vec<Look>> {
    let end_ns = SystemClock.boottime_ns() + i64::from(options.minutes) * 60 * NANOS_PER_SECOND;
    let pause_ns = options.kill_indexer.map_or(LOOK_NS, |millis| i64::from(millis) * 1_000_000);
    let mut looks = Vec::new();
    while SystemClock.boottime_ns() < end_ns {
        looks.push(look(recording.id())?);
        wait(pause_ns);
        if options.kill_indexer.is_some() {
            kill_indexers(recording.id())?;
        }
    }
    Ok(looks)
}

/// Indexers are children of the recorder's launcher.
fn kill_indexers(recorder: u32) -> Result<()> {
    let children = |process: &str| {
        let path = format!("/proc/{process}/task/{process}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let launchers = children(&recorder.to_string());
    let indexers: Vec<String> = launchers.iter().flat_map(|launcher| children(launcher)).collect();
    if !indexers.is_empty() {
        // One may have ended meanwhile.
        Command::new("kill").arg("-KILL").args(indexers).stderr(Stdio::null()).status()?;
    }
    Ok(())
}

fn look(process: u32) -> Result<Look> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}"));
    let (io, status) = (read("io").context("the recorder ended early")?, read("status")?);
    let value = |text: &str, name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).with_context(|| format!("no {name}"))
    };
    Ok(Look {
        at_ns: SystemClock.boottime_ns(),
        written_bytes: value(&io, "write_bytes:")?,
        memory_bytes: value(&status, "VmRSS:")? * 1024,
    })
}

/// Bytes a second of each whole lap round the volume.
fn laps(looks: &[Look], lap_bytes: u64) -> Vec<f64> {
    let mut rates = Vec::new();
    let Some(&(mut begin)) = looks.first() else { return rates };
    for look in looks {
        let written = look.written_bytes - begin.written_bytes;
        if written >= lap_bytes {
            let seconds = real(u64::try_from(look.at_ns - begin.at_ns).unwrap_or(1)) / 1e9;
            rates.push(real(written) / seconds);
            begin = *look;
        }
    }
    rates
}

fn report(
    options: &Options,
    looks: &[Look],
    (sent, recorded): (&Value, &Value),
) -> Result<Outcome> {
    let count = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_u64).with_context(|| format!("no {name}"))
    };
    let mut outcome = Outcome::new("Recording for long, round and round");
    let laps = laps(looks, options.size.0);
    let (Some(first), Some(last)) = (laps.first(), laps.last()) else {
        anyhow::bail!("not one lap was done: a smaller volume, or more time");
    };
    let (offered, stored) = (count(recorded, "offered")?, count(recorded, "stored")?);
    let packets = count(sent, "packets")?;
    ensure!(packets > 0, "nothing was sent");
    let megabytes = |bytes: f64| format!("{:.0} MB", bytes / 1e6);
    outcome.line(format!(
        "{} Gbit/s for {} minutes into {}: {} laps; sent {packets}, offered {offered}, stored \
         {stored}",
        options.gbit,
        options.minutes,
        options.size,
        laps.len(),
    ));
    let lap_rates = Sample::new(laps.iter().copied())?;
    outcome.line(format!(
        "written a second: first lap {}, last {}, spread of all {:.1} %",
        megabytes(*first),
        megabytes(*last),
        lap_rates.spread() * 100.0,
    ));
    let third = |number: usize| {
        let looks = looks.iter().skip(looks.len() * number / 3).take(looks.len() / 3);
        looks.map(|look| look.memory_bytes).max().context("no look at the memory")
    };
    let (early, late) = (third(0)?, third(2)?);
    outcome.line(format!(
        "most memory: {} in the first third, {} in the last",
        megabytes(real(early)),
        megabytes(real(late)),
    ));
    outcome.line(format!(
        "the indexer died {} times; {} packets without a row, {} of them left \
         out for good",
        count(recorded, "indexer_deaths")?,
        count(recorded, "unindexed")?,
        count(recorded, "left_out")?,
    ));
    outcome.judge("stored of sent", &Sample::new([real(stored) / real(packets)])?, 1.0);
    let real_laps = real(u64::try_from(laps.len())?);
    outcome.judge("laps", &Sample::new([real_laps])?, LAPS);
    outcome.judge("last lap's rate over the first's", &Sample::new([last / first])?, LAST_LAP);
    outcome.judge(
        "memory of the first third over the last's",
        &Sample::new([real(early) / real(late)])?,
        LAST_LAP,
    );
    outcome.json("laps_bytes_per_s", json!(laps));
    outcome.json("recorded", recorded.clone());
    outcome.not_proven("what a real card does: a pair has no receive ring of its own");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_is_what_the_volume_holds() {
        let look = |seconds: i64, written_bytes| Look {
            at_ns: seconds * NANOS_PER_SECOND,
            written_bytes,
            memory_bytes: 0,
        };
        let looks = [look(0, 5), look(1, 60), look(2, 110), look(4, 215), look(5, 300)];
        assert_eq!(laps(&looks, 100), [52.5, 52.5]);
        assert!(laps(&looks, 1000).is_empty() && laps(&[], 1).is_empty());
    }
}
