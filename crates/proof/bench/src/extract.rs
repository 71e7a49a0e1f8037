//! Getting one session out of a volume of several gigabytes, against tcpdump over the same packets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::machine::{FileSystem, Workplace, drop_page_cache};
use crate::mix;
use crate::outcome::Outcome;
use crate::packets::Packets;
use crate::program::{self, Run};
use crate::recorder::Recorder;
use crate::statistics::Sample;
use crate::stenographer::Stenographer;

const GOAL: f64 = 100.0;
/// Each session is got so often either way, in turns; medians are compared, for a disk that others
/// use as well is sometimes slow.
const RUNS: usize = 3;
/// Most packets of a session that is asked for.
const PACKETS_MAX: u64 = 20;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure, with space for twice the capture
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// A capture on that disk; without it a mix is made there
    #[arg(long)]
    mix: Option<PathBuf>,
    /// Packets of the mix
    #[arg(long, default_value_t = 7_500_000)]
    packets: u32,
    /// Flows of the mix
    #[arg(long, default_value_t = 500_000)]
    flows: u32,
    /// Size of the volume
    #[arg(long, default_value = "8G")]
    size: String,
    /// Sessions to extract, one after the other
    #[arg(long, default_value_t = 5)]
    sessions: usize,
    /// Ask Stenographer, too: the capture is replayed to it, over a veth pair
    #[arg(long)]
    stenographer: bool,
    /// Do not empty the page cache before each run (which needs root)
    #[arg(long)]
    warm: bool,
    /// The recorder to measure instead of the one beside this program
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// Two ends and a protocol, whichever end began.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Conversation {
    ends: [(String, u64); 2],
    proto: String,
}

impl Conversation {
    /// A query of wirespool and a filter of tcpdump, word for word.
    fn query(&self) -> String {
        let [(ip, port), (other_ip, other_port)] = &self.ends;
        let proto = &self.proto;
        format!("{proto} and host {ip} and host {other_ip} and port {port} and port {other_port}")
    }
}

/// One conversation, both ways: medians, in seconds.
#[derive(Debug)]
struct Measured {
    packets: usize,
    ours: f64,
    first_byte: f64,
    tcpdump: f64,
    /// Until the first byte, and to the end.
    stenographer: Option<(f64, f64)>,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    ensure!(options.sessions > 0, "at least one session");
    let place = Workplace::new(&options.directory)?;
    let made = place.path("mix.pcap");
    let capture = options.mix.as_ref().unwrap_or(&made);
    if options.mix.is_none() {
        mix::write(
            &made,
            mix::Amount { packets: options.packets, flows: options.flows, traffic: false },
        )?;
    }
    let same_disk = FileSystem::of(capture)? == place.file_system;
    ensure!(same_disk, "the capture must lie on the disk of the volume");
    let recorder =
        Recorder::new(options.wirespool.as_deref(), place.path("volume"), place.path("index"))?;
    recorder.create(&options.size, &[])?;
    recorder.record(capture, &[])?;
    let conversations = choose(&recorder, options.sessions)?;
    let stenographer = if options.stenographer {
        let folder = place.path("stenographer");
        let wirespool = program::wirespool(options.wirespool.as_deref())?;
        Some(Stenographer::fed(&folder, capture, &wirespool)?)
    } else {
        None
    };
    let subject = Subject { options, place: &place, recorder: &recorder, capture, stenographer };
    let measured = conversations
        .iter()
        .map(|conversation| subject.measure(conversation))
        .collect::<Result<Vec<Measured>>>()?;
    report(options, &place, capture, &measured)
}

/// Conversations of 2 to 20 packets, evenly spread over all of them.
fn choose(recorder: &Recorder, wanted: usize) -> Result<Vec<Conversation>> {
    let found = recorder.ask("find", &["--json"])?;
    let mut packets: BTreeMap<Conversation, u64> = BTreeMap::new();
    for line in found.output.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let row: Value = serde_json::from_slice(line)?;
        if let Some((conversation, count)) = conversation(&row) {
            *packets.entry(conversation).or_default() += count;
        }
    }
    packets.retain(|_, count| (2..=PACKETS_MAX).contains(count));
    let step = (packets.len() / wanted).max(1);
    let chosen: Vec<_> = packets.into_keys().skip(step / 2).step_by(step).take(wanted).collect();
    ensure!(chosen.len() == wanted, "only {} conversations are short enough", chosen.len());
    Ok(chosen)
}

/// What a row of `find --json` is about; `None` without ports.
fn conversation(row: &Value) -> Option<(Conversation, u64)> {
    let text = |name| Some(row.get(name)?.as_str()?.to_owned());
    let number = |name| row.get(name)?.as_u64();
    let orig = (text("orig_ip")?, number("orig_port")?);
    let resp = (text("resp_ip")?, number("resp_port")?);
    let proto = text("proto_name")?;
    let ends = if orig <= resp { [orig, resp] } else { [resp, orig] };
    let packets = number("orig_packets")? + number("resp_packets")?;
    Some((Conversation { ends, proto }, packets))
}

/// Whom a conversation is asked of.
struct Subject<'a> {
    options: &'a Options,
    place: &'a Workplace,
    recorder: &'a Recorder,
    capture: &'a Path,
    stenographer: Option<Stenographer>,
}

impl Subject<'_> {
    fn measure(&self, conversation: &Conversation) -> Result<Measured> {
        let query = conversation.query();
        let (mut ours, mut tcpdump, mut stenographer) = (Vec::new(), Vec::new(), Vec::new());
        let mut packets = 0;
        for _ in 0..RUNS {
            self.cool()?;
            let by_us = self.recorder.ask("extract", &[&query, "-w", "-"])?;
            self.cool()?;
            let mut command = Command::new("tcpdump");
            command.arg("-r").arg(self.capture).args(["-w", "-", &query]);
            let by_tcpdump = program::run(&mut command)?;
            let from_us = self.packets("ours.pcapng", &by_us)?;
            let same = from_us.sorted() == self.packets("tcpdump.pcap", &by_tcpdump)?.sorted();
            ensure!(same, "{query}: the extract and tcpdump's differ");
            ensure!(from_us.count() > 0, "{query}: no packets");
            packets = from_us.count();
            ours.push(by_us);
            tcpdump.push(by_tcpdump);
            if let Some(peer) = &self.stenographer {
                self.cool()?;
                let by_peer = peer.ask(&query)?;
                let count = self.packets("stenographer.pcap", &by_peer)?.count();
                ensure!(count == packets, "{query}: stenographer has {count} of {packets} packets");
                stenographer.push(by_peer);
            }
        }
        let median = |runs: &[Run], seconds: fn(&Run) -> f64| {
            Sample::new(runs.iter().map(seconds)).map(|sample| sample.median())
        };
        let to_first = |run: &Run| run.first_byte_seconds;
        let whole = |run: &Run| run.seconds;
        let stenographer = if stenographer.is_empty() {
            None
        } else {
            Some((median(&stenographer, to_first)?, median(&stenographer, whole)?))
        };
        Ok(Measured {
            packets,
            ours: median(&ours, whole)?,
            first_byte: median(&ours, to_first)?,
            tcpdump: median(&tcpdump, whole)?,
            stenographer,
        })
    }

    fn cool(&self) -> Result<()> {
        if self.options.warm { Ok(()) } else { drop_page_cache() }
    }

    fn packets(&self, name: &str, run: &Run) -> Result<Packets> {
        let path = self.place.path(name);
        std::fs::write(&path, &run.output)?;
        Packets::read(&path)
    }
}

fn report(
    options: &Options,
    place: &Workplace,
    capture: &Path,
    measured: &[Measured],
) -> Result<Outcome> {
    let mut outcome = Outcome::new("extract: one session out of many, against tcpdump -r");
    let cache = if options.warm { "warm" } else { "emptied before every run" };
    let FileSystem { kind, device } = &place.file_system;
    let bytes = std::fs::metadata(capture).context("the capture is gone")?.len();
    outcome.line(format!("{bytes} bytes of capture on {kind}, {device}; page cache {cache}"));
    outcome.line(
        "Time of the whole process, start and mount included; the same filter, word for word;",
    );
    outcome.line(format!("the packets of both are equal. Medians of {RUNS}, in turns."));
    outcome.line("  packets   ours ms  first byte ms   tcpdump ms   times faster");
    for Measured { packets, ours, first_byte, tcpdump, .. } in measured {
        outcome.line(format!(
            "  {packets:7} {:9.1} {:14.1} {:12.0} {:14.0}",
            ours * 1e3,
            first_byte * 1e3,
            tcpdump * 1e3,
            tcpdump / ours,
        ));
    }
    report_stenographer(&mut outcome, measured);
    for Measured { packets, ours, first_byte, tcpdump, stenographer } in measured {
        outcome.push_json(
            "sessions",
            json!({
                "packets": packets, "seconds": ours, "first_byte_seconds": first_byte,
                "tcpdump_seconds": tcpdump,
                "stenographer_first_byte_seconds": stenographer.map(|(first, _)| first),
                "stenographer_seconds": stenographer.map(|(_, whole)| whole),
            }),
        );
    }
    outcome.json("capture_bytes", bytes);
    let ratio = Sample::new(measured.iter().map(|one| one.tcpdump / one.ours))?;
    outcome.judge("times faster than tcpdump", &ratio, GOAL);
    let ours = Sample::new(measured.iter().map(|one| one.ours * 1e3))?;
    outcome.line(format!(
        "ours: median {:.1} ms, spread {:.0} %",
        ours.median(),
        ours.spread() * 100.0
    ));
    outcome.not_proven("sessions whose packets lie all over the volume, or of many packets");
    outcome.not_proven("a volume being recorded to at the same time");
    Ok(outcome)
}

/// Both as they are asked: ours starts and mounts, its client asks a server that runs.
fn report_stenographer(outcome: &mut Outcome, measured: &[Measured]) {
    let mut is_first = true;
    for Measured { packets, first_byte, stenographer, .. } in measured {
        let Some((first, whole)) = stenographer else { continue };
        if core::mem::take(&mut is_first) {
            outcome.line("Stenographer, which had the same packets over a link, asked with curl:");
            outcome.line("  packets  all ms  first byte ms  ours first byte ms");
        }
        outcome.line(format!(
            "  {packets:7} {:7.1} {:14.1} {:19.1}",
            whole * 1e3,
            first * 1e3,
            first_byte * 1e3,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_one_conversation() {
        let row = |orig: (&str, u16), resp: (&str, u16)| {
            json!({ "proto_name": "tcp", "orig_ip": orig.0, "orig_port": orig.1, "resp_ip": resp.0,
                    "resp_port": resp.1, "orig_packets": 2, "resp_packets": 3 })
        };
        let (a, b) = (("10.0.0.1", 80), ("10.0.0.2", 4000));
        let (there, packets) = conversation(&row(a, b)).unwrap();
        assert_eq!((conversation(&row(b, a)).unwrap().0, packets), (there.clone(), 5));
        assert_eq!(
            there.query(),
            "tcp and host 10.0.0.1 and host 10.0.0.2 and port 80 and port 4000"
        );
        assert!(conversation(&json!({ "proto_name": "icmp", "orig_ip": "10.0.0.1" })).is_none());
    }
}
