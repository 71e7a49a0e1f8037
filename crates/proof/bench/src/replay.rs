//! Filling a veth pair, against trafgen.
//!
//! Both send the same frames at top speed from one end of a pair in a network namespace of its own;
//! no program listens at the other end, so the kernel frees each frame there. The sender pays for
//! all of it, and what is compared is packets a second of the whole process.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;
use units::number::{real, to_u64};

use crate::outcome::Outcome;
use crate::pair::Pair;
use crate::program;
use crate::statistics::Sample;

const GOAL: f64 = 1.0;
/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Lengths of the frames
    #[arg(long, value_delimiter = ',', default_value = "64,512,1514")]
    frames: Vec<usize>,
    /// Packets of a run
    #[arg(long, default_value_t = 1_000_000)]
    packets: u64,
    /// Packets of the file, each from another host: few stay in the cache, as trafgen's one does
    #[arg(long, default_value_t = 64)]
    file_packets: u16,
    /// Threads of ours, and processes of trafgen
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<u32>,
    /// Ways of ours: packet, xdp (with one thread: the pair has one queue)
    #[arg(long, value_delimiter = ',', default_value = "packet,xdp")]
    via: Vec<String>,
    /// Groups of ours, trafgen, trafgen, ours
    #[arg(long, default_value_t = 5)]
    groups: u32,
    /// The program to measure instead of the one beside this one
    #[arg(long)]
    wirespool: Option<PathBuf>,
}

/// One run: packets a second and CPU seconds a million packets.
#[derive(Clone, Copy, Debug)]
struct Run {
    rate: f64,
    cpu: f64,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let file_packets = u64::from(options.file_packets);
    ensure!(options.groups > 0 && file_packets > 0, "a group and a packet at least");
    ensure!(options.packets >= file_packets, "the file is sent once at least");
    let wirespool = program::wirespool(options.wirespool.as_deref())?;
    let folder = host::TemporaryDirectory::new("wirespool-bench")?;
    let pair = Pair::new()?;
    let mut outcome = Outcome::new("Filling a veth pair, against trafgen");
    let stage = Stage { options, pair, wirespool, folder };
    for via in &options.via {
        for &threads in options.threads.iter().filter(|&&threads| via == "packet" || threads == 1) {
            for &len in &options.frames {
                let groups = stage.groups(via, threads, len)?;
                report(&mut outcome, (via, threads, len), &groups)?;
            }
        }
    }
    outcome
        .not_proven("how fast a real card is filled: here the sender pays for the receiver, too");
    outcome.not_proven(
        "the cost of reading the file: it is small, in memory, and sent again and again",
    );
    Ok(outcome)
}

/// What all runs share.
struct Stage<'a> {
    options: &'a Options,
    pair: Pair,
    wirespool: PathBuf,
    folder: host::TemporaryDirectory,
}

impl Stage<'_> {
    /// Ours, trafgen, trafgen, ours; again and again.
    fn groups(&self, via: &str, threads: u32, len: usize) -> Result<Vec<[Run; 4]>> {
        ensure!((60..=9014).contains(&len), "frames have 60 to 9014 bytes");
        let Self { options, pair, wirespool, folder } = self;
        let (file, config) = (folder.path().join("frames.pcap"), folder.path().join("frames.cfg"));
        std::fs::write(&file, capture(len, options.file_packets))?;
        std::fs::write(&config, trafgen_config(len))?;
        let threads = threads.to_string();
        let ours = || {
            let file_packets = u64::from(options.file_packets);
            let loops = options.packets / file_packets;
            let mut command = pair.program(wirespool);
            command.arg("replay").arg(&file).args(["--interface", "left", "--top", "--json"]);
            command.args(["--loops", &loops.to_string(), "--threads", &threads, "--via", via]);
            measure(pair, &mut command, loops * file_packets)
        };
        let trafgen = || {
            let mut command = pair.program("trafgen");
            command.arg("--in").arg(&config).args(["--out", "left", "--no-cpu-stats"]);
            command.args(["--cpus", &threads, "--num", &options.packets.to_string()]);
            measure(pair, &mut command, options.packets)
        };
        // What is slow only once is out of the way.
        ours()?;
        (0..options.groups).map(|_| Ok([ours()?, trafgen()?, trafgen()?, ours()?])).collect()
    }
}

/// Runs a sender and counts what it sent at the other end.
fn measure(pair: &Pair, command: &mut Command, packets: u64) -> Result<Run> {
    let before = pair.received()?;
    let run = program::run(command)?;
    let received = pair.received()? - before;
    ensure!(received == packets, "{received} of {packets} packets came out of the pair");
    Ok(Run { rate: real(packets) / run.seconds, cpu: run.cpu_seconds / real(packets) * 1e6 })
}

fn report(
    outcome: &mut Outcome,
    (via, threads, len): (&str, u32, usize),
    groups: &[[Run; 4]],
) -> Result<()> {
    let of = |places: [usize; 2], value: fn(&Run) -> f64| {
        let runs = groups.iter().flat_map(|group| places.map(|at| group.get(at)));
        Sample::new(runs.flatten().map(value))
    };
    let (ours, theirs) = ([0, 3], [1, 2]);
    let [our_rate, their_rate] = [of(ours, |run| run.rate)?, of(theirs, |run| run.rate)?];
    let gbit = |rate: f64| rate * real(to_u64(len)) * 8.0 / 1e9;
    outcome.line(format!(
        "{len} B, {threads} threads: ours by {via} {:.0} kpps ({:.2} Gbit/s of frames), spread \
         {:.0} %, {:.2} CPU s/M; trafgen {:.0} kpps, spread {:.0} %, {:.2} CPU s/M",
        our_rate.median() / 1e3,
        gbit(our_rate.median()),
        our_rate.spread() * 100.0,
        of(ours, |run| run.cpu)?.median(),
        their_rate.median() / 1e3,
        their_rate.spread() * 100.0,
        of(theirs, |run| run.cpu)?.median(),
    ));
    outcome.push_json(
        "rates",
        json!({ "frame_bytes": len, "via": via, "threads": threads,
                "ours_packets_per_s": our_rate.median(),
                "trafgen_packets_per_s": their_rate.median() }),
    );
    let ratios = groups.iter().map(|[first, one, two, last]| {
        // Packets over the time of both runs.
        (1.0 / one.rate + 1.0 / two.rate) / (1.0 / first.rate + 1.0 / last.rate)
    });
    let what = format!("{len} B by {via}, {threads} threads, against trafgen");
    outcome.judge(&what, &Sample::new(ratios)?, GOAL);
    Ok(())
}

/// A pcap of frames of UDP, each from another host.
pub(crate) fn capture(len: usize, packets: u16) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1_u32] {
        file.extend(word.to_le_bytes());
    }
    let frame_len = u32::try_from(len).expect("a frame is short").to_le_bytes();
    for host in 0..packets {
        file.extend([0; 8]);
        file.extend(frame_len);
        file.extend(frame_len);
        file.extend(frame(len, host));
    }
    file
}

/// Without checksums: no receiver looks at them.
fn frame(len: usize, host: u16) -> Vec<u8> {
    let [high, low] = host.to_be_bytes();
    let size =
        |headers: usize| u16::try_from(len - headers).expect("a frame is short").to_be_bytes();
    let ([ip_high, ip_low], [udp_high, udp_low]) = (size(14), size(34));
    let mut frame = vec![0, 0x11, 0x22, 0x33, 0x44, 0x55, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 8, 0];
    frame.extend([0x45, 0, ip_high, ip_low, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(Ipv4Addr::new(10, 1, high, low).octets());
    frame.extend(Ipv4Addr::new(10, 2, 0, 1).octets());
    frame.extend([0x0f, 0xa0, 0, 53, udp_high, udp_low, 0, 0]);
    frame.resize(len, b'A');
    frame
}

fn trafgen_config(len: usize) -> String {
    format!(
        "{{ eth(da=00:11:22:33:44:55, sa=00:aa:bb:cc:dd:ee), ipv4(saddr=10.1.0.1, daddr=10.2.0.1), \
         udp(sport=4000, dport=53), fill('A', {}) }}\n",
        len - HEADERS
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_a_capture_of_frames_of_the_length_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.pcap");
        std::fs::write(&path, capture(64, 500)).unwrap();
        let packets = crate::packets::Packets::read(&path).unwrap();
        assert_eq!(packets.count(), 500);
        assert_eq!((frame(64, 7).len(), frame(1514, 7).len()), (64, 1514));
        assert!(trafgen_config(64).contains("fill('A', 22)"));
    }
}
