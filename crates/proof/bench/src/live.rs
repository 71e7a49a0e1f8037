//! Recording from a link, against tcpdump, dumpcap, netsniff-ng and stenotype.
//!
//! Each recorder in turn gets the same packets through a veth pair, at top speed from a sender with
//! a processor of its own, and is interrupted when all have been sent. Its processor time is that
//! of its life. The sender pays for the kernel's copy into the recorder's ring, so that is in
//! in no recorder's figure; what the whole machine was busy beyond the sender is reported beside
//! it.

mod recorders;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use host::{Program, TemporaryDirectory};
use observe::ProcessorUse;
use serde_json::{Value, json};
use units::NANOS_PER_SECOND;
use units::number::real;

use crate::mix;
use crate::outcome::Outcome;
use crate::pair::Pair;
use crate::program::{self, wait};
use crate::recorder::Recorder;
use crate::replay::capture;
use crate::statistics::Sample;
use recorders::{Peer, Recording};

/// Until a recorder has opened its socket and made its memory ready.
const START_NS: i64 = 3 * NANOS_PER_SECOND / 2;
/// For what is still on its way.
const SETTLE_NS: i64 = NANOS_PER_SECOND / 2;
/// A recorder that takes longer to stop is killed: stenotype at times never does.
const STOP_MAX: Duration = Duration::from_secs(15);
/// In the place of a length: the mix of 100 000 flows, and as many whole conversations.
const MIX: &str = "mix";
const TRAFFIC: &str = "traffic";
/// A volume in which segments have their full size, as on disks.
const VOLUME: &str = "72G";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Lengths of the frames of one flow, `mix`, and `traffic`: whole conversations
    #[arg(long, value_delimiter = ',', default_value = "64,512,1514,mix,traffic")]
    frames: Vec<String>,
    /// Packets of a run
    #[arg(long, default_value_t = 1_500_000)]
    packets: u32,
    /// Rounds, in each of which every recorder has one run
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Where recorders write
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Ours once more, with these options of `record`, such as '--source xdp'
    #[arg(long, value_name = "OPTIONS")]
    also: Option<String>,
    /// Packets a second instead of top speed
    #[arg(long)]
    pps: Option<u32>,
    /// The program to measure instead of the one beside this one
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// One run of one recorder.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Share of the packets offered that is stored.
    stored: f64,
    /// Of the recorder alone, for 10^9 bytes of frames.
    cpu_per_gb: f64,
    /// Of the whole machine but for the sender.
    machine_per_gb: f64,
    packets_per_s: f64,
    bits_per_s: f64,
}

/// What all runs share.
struct Stage {
    pair: Pair,
    folder: TemporaryDirectory,
    recorder: Recorder,
    /// Processors of the recorders; the sender has the first.
    processors: String,
    packets: u32,
    pps: Option<u32>,
    dir: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.rounds > 0 && options.packets > 0, "a round and a packet at least");
    let stage = Stage::new(options)?;
    let peers = recorders::installed();
    let mut outcome = Outcome::new("Recording from a veth pair, against other recorders");
    outcome.line(format!("peers that are installed: {}", names(&peers)));
    for frames in &options.frames {
        let file = stage.load(frames)?;
        let (mut rounds, mut others) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let ours = stage.run(&stage.ours("")?, &file)?;
            if let Some(also) = &options.also {
                others.push(stage.run(&stage.ours(also)?, &file)?);
            }
            let theirs = peers.iter().map(|peer| stage.run(&stage.peer(*peer), &file));
            rounds.push((ours, theirs.collect::<Result<Vec<_>>>()?));
        }
        fs::remove_file(&file)?;
        if let Some(also) = &options.also {
            tell(&mut outcome, (frames, also), &others)?;
        }
        report(&mut outcome, frames, &peers, &rounds)?;
    }
    outcome.not_proven("how a real card is read: a pair has one queue, and the sender fills it");
    outcome.not_proven("what the others would do with an index or with checksums: most have none");
    Ok(outcome)
}

fn names(peers: &[Peer]) -> String {
    peers.iter().map(|peer| peer.name()).collect::<Vec<_>>().join(", ")
}

impl Stage {
    fn new(options: &Options) -> Result<Self> {
        let count = std::thread::available_parallelism()?.get();
        ensure!(count > 1, "the sender and the recorder need a processor each");
        let folder = TemporaryDirectory::new("wirespool-bench")?;
        let dir = options.dir.join(format!("bench-live-{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let (volume, index_dir) = (dir.join("volume"), dir.join("index"));
        let recorder = Recorder::new(options.wirespool.as_deref(), volume, index_dir)?;
        Ok(Self {
            pair: Pair::new()?,
            folder,
            recorder,
            processors: if count > 2 { format!("1-{}", count - 1) } else { "1".to_owned() },
            packets: options.packets,
            pps: options.pps,
            dir,
        })
    }

    /// The packets as a file: one frame, the mix, or conversations.
    fn load(&self, frames: &str) -> Result<PathBuf> {
        let file = self.dir.join("load.pcap");
        if [MIX, TRAFFIC].contains(&frames) {
            let traffic = frames == TRAFFIC;
            mix::write(&file, mix::Amount { packets: self.packets, flows: 100_000, traffic })?;
        } else {
            let len = frames.parse().context("frames are lengths, mix or traffic")?;
            ensure!((60..=9014).contains(&len), "frames have 60 to 9014 bytes");
            fs::write(&file, capture(len, 1))?;
        }
        Ok(file)
    }

    /// Ours, into a new volume, as the peers write new files.
    fn ours(&self, options: &str) -> Result<Recording> {
        drop(fs::remove_file(&self.recorder.volume));
        self.recorder.create(VOLUME, &["--sparse"])?;
        Ok(recorders::ours(&self.recorder, options))
    }

    fn peer(&self, peer: Peer) -> Recording {
        peer.recording(&self.dir.join("peer"))
    }

    fn run(&self, recording: &Recording, file: &Path) -> Result<Run> {
        let output = self.dir.join("peer");
        // What the run before has left.
        drop(fs::remove_dir_all(&output));
        recorders::make_folder(&output)?;
        let mut arguments = self.pair.entering().to_vec();
        arguments.extend(["taskset", "-c", &self.processors].map(OsString::from));
        arguments.extend(recording.command.iter().cloned());
        let program = Program::start(Path::new("ip"), &arguments, self.folder.path())?;
        wait(START_NS);
        let before = ProcessorUse::now().context("no /proc/stat")?;
        let sent = self.send(file)?;
        wait(SETTLE_NS);
        program.interrupt();
        let ended = program.wait(STOP_MAX)?;
        let busy = ProcessorUse::now().context("no /proc/stat")?.since(before);
        let machine = real(busy.busy_ns + busy.stolen_ns) / 1e9 - sent.cpu_seconds;
        let stored = (recording.count)(&ended, &output)?;
        drop(fs::remove_dir_all(&output));
        let gigabytes = sent.bytes / 1e9;
        Ok(Run {
            stored: real(stored) / sent.packets,
            cpu_per_gb: ended.cpu.total().as_secs_f64() / gigabytes,
            machine_per_gb: machine / gigabytes,
            packets_per_s: sent.packets / sent.seconds,
            bits_per_s: sent.bytes * 8.0 / sent.seconds,
        })
    }

    /// Sends all packets on the first processor.
    fn send(&self, file: &Path) -> Result<Sent> {
        let received = self.pair.received()?;
        let is_one = fs::metadata(file)?.len() < 10_000;
        let loops = if is_one { self.packets } else { 1 };
        let mut command = self.pair.program("taskset");
        command.args(["-c", "0"]).args(self.recorder.sending(file));
        command.args(["--loops", &loops.to_string()]);
        match self.pps {
            Some(pps) => command.args(["--pps", &pps.to_string()]),
            None => command.arg("--top"),
        };
        let run = program::run(&mut command)?;
        let report = run.json()?;
        let count = |name: &str| {
            let value = report.get(name).and_then(Value::as_u64);
            value.with_context(|| format!("the sender's report has no {name}"))
        };
        let packets = count("packets")?;
        // What the pair itself drops is lost to the recorder, too: AF_XDP has it keep packets in a
        // ring of 256.
        let arrived = self.pair.received()? - received;
        ensure!(arrived <= packets, "{arrived} of {packets} packets came out of the pair");
        Ok(Sent {
            packets: real(packets),
            bytes: real(count("frame_bytes")?),
            seconds: real(count("elapsed_ns")?) / 1e9,
            cpu_seconds: run.cpu_seconds,
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed the user finds in the directory that was named.
        drop(fs::remove_dir_all(&self.dir));
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    packets: f64,
    bytes: f64,
    seconds: f64,
    cpu_seconds: f64,
}

/// Ours, and the others in their order.
type Round = (Run, Vec<Run>);

fn report(outcome: &mut Outcome, frames: &str, peers: &[Peer], rounds: &[Round]) -> Result<()> {
    tell(
        outcome,
        (frames, "wirespool"),
        &rounds.iter().map(|(ours, _)| *ours).collect::<Vec<_>>(),
    )?;
    for (at, peer) in peers.iter().enumerate() {
        let runs = rounds.iter().filter_map(|(_, theirs)| theirs.get(at).copied());
        tell(outcome, (frames, peer.name()), &runs.collect::<Vec<_>>())?;
    }
    if peers.is_empty() {
        return Ok(());
    }
    let best = |theirs: &[Run], value: fn(&Run) -> f64, of: fn(f64, f64) -> f64| {
        theirs.iter().map(value).reduce(of).expect("there is a peer")
    };
    let stored = rounds.iter().map(|(ours, theirs)| {
        ours.stored / best(theirs, |run| run.stored, f64::max).max(f64::MIN_POSITIVE)
    });
    outcome.judge(&format!("{frames}: stored, against the best"), &Sample::new(stored)?, 1.0);
    for &(load, against, goal) in GOALS.iter().filter(|(load, ..)| *load == frames) {
        let place = peers.iter().position(|peer| Some(peer.name()) == against);
        if against.is_some() && place.is_none() {
            continue;
        }
        let ratios = rounds.iter().map(|(ours, theirs)| {
            let theirs = place
                .and_then(|at| theirs.get(at))
                .map_or_else(|| best(theirs, |run| run.cpu_per_gb, f64::min), |run| run.cpu_per_gb);
            theirs / ours.cpu_per_gb
        });
        let what = format!("{load}: CPU s/GB of {} over ours", against.unwrap_or("the best"));
        outcome.judge(&what, &Sample::new(ratios)?, goal);
    }
    Ok(())
}

/// Which load, against whom (all of them where none is named), how many times our CPU time they
/// have to take.
const GOALS: [(&str, Option<&str>, f64); 4] = [
    (MIX, Some("netsniff-ng"), 2.0),
    (MIX, Some("stenotype"), 4.0),
    ("64", None, 1.0 / 0.75),
    ("1514", Some("stenotype"), 1.0 / 2.5),
];

fn tell(outcome: &mut Outcome, (frames, name): (&str, &str), runs: &[Run]) -> Result<()> {
    let of = |value: fn(&Run) -> f64| Sample::new(runs.iter().map(value));
    let (cpu, machine) = (of(|run| run.cpu_per_gb)?, of(|run| run.machine_per_gb)?);
    let lost_share = 1.0 - of(|run| run.stored)?.median();
    let (rate, bits) = (of(|run| run.packets_per_s)?, of(|run| run.bits_per_s)?);
    outcome.line(format!(
        "{frames} {name:11}: lost {:6.2} %, CPU {:5.2} s/GB (spread {:.0} %), machine {:5.2} s/GB; \
         offered {:.0} kpps, {:.2} Gbit/s",
        lost_share * 100.0,
        cpu.median(),
        cpu.spread() * 100.0,
        machine.median(),
        rate.median() / 1e3,
        bits.median() / 1e9,
    ));
    let each: Vec<Value> = runs
        .iter()
        .map(|run| json!({ "stored_share": run.stored, "cpu_s_per_gb": run.cpu_per_gb }))
        .collect();
    outcome.push_json(
        "recorders",
        json!({ "frames": frames, "name": name, "lost_share": lost_share,
                "cpu_s_per_gb": cpu.median(), "machine_s_per_gb": machine.median(),
                "packets_per_s": rate.median(), "runs": each }),
    );
    Ok(())
}
