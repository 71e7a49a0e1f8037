//! What a recording costs by step: instructions, as callgrind counts them, for each packet and for
//! each session; and bytes and time of what is archived of it.
//!
//! Two files of as many packets and of two numbers of conversations are recorded in one process,
//! with the indexer as a thread; the difference is what sessions cost. The time of an instruction
//! is that of the same recording without callgrind. `scale` computes machines and fleets from this.

mod archived;
mod callgrind;
mod figures;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use units::number::real;

pub(crate) use archived::{Archived, run as archive};

use figures::{folder_bytes, note};

use crate::machine::Workplace;
use crate::outcome::Outcome;
use crate::program::{self, Run};
use crate::statistics::Sample;
use crate::traffic;

/// Recordings of the same file without callgrind.
const ROUNDS: usize = 5;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory for volumes
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// The recorder that makes the volumes, lists sessions: sizes alone are taken of it
    #[arg(long)]
    wirespool: PathBuf,
    /// Packets of each file
    #[arg(long, default_value_t = 300_000)]
    packets: u32,
    /// Write the figures into this file, in place of those before
    #[arg(long)]
    into: Option<PathBuf>,
}

/// Runs a program to which the kernel refuses `PR_GET_AUXV` (prctl(2)). By its answer rustix looks
/// for the vDSO where the kernel has put it, and valgrind maps none there; without, it reads
/// /proc/self/auxv, in which valgrind leaves the vDSO out.
const WITHOUT_AUXV: &str = "\
import ctypes, os, struct, sys
op = lambda code, hit, miss, k: struct.pack('HBBI', code, hit, miss, k)
code = (op(0x20, 0, 0, 0) + op(0x15, 0, 3, 157) + op(0x20, 0, 0, 16)
        + op(0x15, 0, 1, 0x41555856) + op(0x06, 0, 0, 0x50016) + op(0x06, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxP', len(code) // 8, ctypes.addressof(filter))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0):
    sys.exit('the kernel takes no filter')
os.execvp(sys.argv[1], sys.argv[1:])
";

/// A recording under callgrind.
struct Counted {
    sessions: f64,
    steps: BTreeMap<(&'static str, &'static str), f64>,
}

impl Counted {
    fn instructions(&self) -> f64 {
        self.steps.values().sum()
    }
}

/// Where things are, for one file.
struct Place<'a> {
    options: &'a Options,
    volume: PathBuf,
    index: PathBuf,
    input: PathBuf,
}

impl Place<'_> {
    fn create(&self) -> Result<()> {
        let mut command = Command::new(&self.options.wirespool);
        command.arg("create").arg(&self.volume).args(["--force", "--size", "2G"]);
        program::run(&mut command).map(drop)
    }

    fn alone(&self, command: &mut Command) -> Result<Run> {
        program::run(command.arg("alone").args([&self.volume, &self.input, &self.index]))
    }

    fn counted(&self) -> Result<Counted> {
        self.create()?;
        let out = self.input.with_extension("callgrind");
        let mut command = Command::new("python3");
        command.args(["-c", WITHOUT_AUXV, "valgrind", "--tool=callgrind", "--dump-line=yes"]);
        command.arg("--log-file=/dev/null");
        command.arg(format!("--callgrind-out-file={}", out.display()));
        let said = self.alone(command.arg(std::env::current_exe()?))?.json()?;
        let sessions = said.get("sessions").and_then(Value::as_u64).context("no sessions")?;
        let steps = callgrind::read(&out)?;
        Ok(Counted { sessions: real(sessions), steps })
    }
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let work = Workplace::new(&options.directory)?;
    let packets = real(u64::from(options.packets));
    let place = |name: &str| Place {
        options,
        volume: work.path("volume"),
        index: work.path("index"),
        input: work.path(name),
    };
    let (many, few) = (place("many"), place("few"));
    let bytes = traffic::write(&many.input, options.packets, options.packets / 15)?;
    traffic::write(&few.input, options.packets, options.packets / 150)?;
    let counted = [many.counted()?, few.counted()?];
    let [of_many, of_few] = &counted;
    ensure!(of_many.sessions > 2.0 * of_few.sessions, "the files differ in their sessions");
    let steps = steps(&counted, packets);
    let mut figures = Map::new();
    // Behind each packet of a pcap file are 16 bytes of its header.
    note(&mut figures, "frame_bytes", real(bytes) / packets - 16.0);
    note(&mut figures, "packets_per_session", packets / of_many.sessions);
    note(&mut figures, "clock_ghz", clock_ghz()?);
    note_time(&mut figures, &many, of_many)?;
    archived::measure(&mut figures, (&many.volume, &many.index), &work.path("archive"))?;
    sizes(&mut figures, &many)?;
    report(options, steps, figures)
}

/// What each step costs a packet, and a session, by two files of as many packets.
fn steps([many, few]: &[Counted; 2], packets: f64) -> Vec<Value> {
    let round = |value: f64| real(units::number::whole(value * 10.0)) / 10.0;
    let step = |(&(name, thread), &with_many): (&(&str, &str), &f64)| {
        let with_few = few.steps.get(&(name, thread)).copied().unwrap_or(0.0);
        let session = ((with_many - with_few) / (many.sessions - few.sessions)).max(0.0);
        let packet = ((with_many - session * many.sessions) / packets).max(0.0);
        let (packet, session) = (round(packet), round(session));
        json!({ "name": name, "thread": thread, "packet": packet, "session": session })
    };
    many.steps.iter().map(step).collect()
}

/// What an instruction takes, in a recording that nothing watches.
fn note_time(figures: &mut Map<String, Value>, place: &Place<'_>, counted: &Counted) -> Result<()> {
    let exe = std::env::current_exe()?;
    let mut seconds = Vec::new();
    for _ in 0..ROUNDS {
        place.create()?;
        seconds.push(place.alone(&mut Command::new(&exe))?.cpu_seconds);
    }
    // Further parts of the ring, for what is archived and merged.
    for _ in 0..2 {
        place.alone(&mut Command::new(&exe))?;
    }
    let seconds = Sample::new(seconds)?;
    note(figures, "ns_per_instruction", seconds.median() * 1e9 / counted.instructions());
    Ok(())
}

/// The processor's clock, as the kernel says it.
fn clock_ghz() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz")).context("no clock")?;
    let (_, megahertz) = line.split_once(':').context("no clock")?;
    Ok(megahertz.trim().parse::<f64>()? / 1000.0)
}

/// Bytes of a session in the index, and on its way to who asks.
fn sizes(figures: &mut Map<String, Value>, place: &Place<'_>) -> Result<()> {
    let mut command = Command::new(&place.options.wirespool);
    command.arg("find").arg(&place.volume).arg("--json").arg("--index-dir").arg(&place.index);
    let found = program::run_up_to(&mut command, 1)?.output;
    let rows = String::from_utf8_lossy(&found).lines().count();
    let rows = real(units::number::to_u64(rows));
    ensure!(rows > 0.0, "no session was found");
    let bytes = real(units::number::to_u64(found.len()));
    note(figures, "row_json_bytes", bytes / rows);
    let index = folder_bytes(&place.index)?;
    note(figures, "index_bytes_per_session", real(index) / rows);
    Ok(())
}

fn report(options: &Options, steps: Vec<Value>, figures: Map<String, Value>) -> Result<Outcome> {
    let mut outcome = Outcome::new("Cost of a recording by step");
    for step in &steps {
        let text = |key: &str| step.get(key).map(Value::to_string).unwrap_or_default();
        let (name, packet, session) = (text("name"), text("packet"), text("session"));
        outcome.line(format!("{name}: {packet} instructions a packet, {session} a session"));
    }
    for (name, figure) in &figures {
        outcome.line(format!("{name}: {}", figure.get("value").unwrap_or(&Value::Null)));
    }
    outcome.not_proven("what a real card, and caches of other sizes, cost");
    outcome.not_proven("instructions that callgrind's processor lacks (AVX-512)");
    if let Some(into) = &options.into {
        let before = std::fs::read(into).unwrap_or_else(|_| b"{}".to_vec());
        let mut all: Map<String, Value> = serde_json::from_slice(&before)?;
        all.insert("steps".to_owned(), Value::Array(steps.clone()));
        let known = all.entry("figures").or_insert_with(|| json!({}));
        known.as_object_mut().context("figures are by name")?.extend(figures.clone());
        std::fs::write(into, serde_json::to_string_pretty(&all)? + "\n")?;
    }
    outcome.json("steps", steps);
    outcome.json("figures", figures);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_more_sessions_cost_is_of_sessions_and_the_rest_of_packets() {
        let counted = |sessions: f64| Counted {
            sessions,
            steps: BTreeMap::from([(("names", "indexer"), 100.0 * 7.0 + sessions * 30.0)]),
        };
        let steps = steps(&[counted(10.0), counted(2.0)], 100.0);
        let expected =
            json!({ "name": "names", "thread": "indexer", "packet": 7.0, "session": 30.0 });
        assert_eq!(steps, [expected]);
    }
}
