//! `wirespool replay`.

use core::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ::replay::{Input, Options, Pace, Report, Rewrite};
use anyhow::bail;
use capture::{FileOptions, FileSource, FrameLimits, Outlet, Source, Transmitter, XdpTransmitter};
use clap::Args;
use host::{StopFlag, SystemClock};

use crate::extracted::{Extract, Extracted};
use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::Progress;
use crate::reading::ReadingFlags;
use crate::{arguments, stdout};

/// Most threads that send.
const THREADS_MAX: usize = 64;

/// Send packets of a capture file or a volume on an interface.
///
/// Packets go with the gaps of the capture, unless another speed is given. They are sent as they
/// were captured, byte for byte; what cannot be sent is counted by reason. The report has the
/// rate that was reached and how far packets were behind their times; none goes early. Ctrl-C stops
/// and reports so far. Sending needs root, or the capability to open raw sockets.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool replay traffic.pcapng --interface eth1
  wirespool replay traffic.pcapng --interface eth1 --gbit 2.5 --loops 100 --unique
  wirespool replay /data/spool 'host 10.0.0.1 and after 1h ago' --interface eth1 --speed x10
  wirespool replay old.pcap.gz --interface eth1 --top

Rates count the bits of frames, without preamble, checksum and gap (24 bytes a frame).

Exit code 1 when not every packet was sent, or it was stopped.")]
pub struct Flags {
    /// A capture file, a directory of them, standard input (-), or with a query a volume
    #[arg(value_name = "FILE|VOLUME")]
    input: PathBuf,
    /// Which packets of a volume; '' is all of them
    query: Vec<String>,
    /// Send on this interface
    #[arg(long, short, value_name = "INTERFACE")]
    interface: String,
    #[command(flatten)]
    pace: PaceFlags,
    /// How many times to send the packets; 0 repeats until Ctrl-C
    #[arg(long, value_name = "N", default_value_t = 1)]
    loops: u64,
    /// Addresses of their own for each loop, of the outermost IP header, with right checksums
    #[arg(long)]
    unique: bool,
    /// Fill truncated packets up with zeros instead of leaving them out
    #[arg(long)]
    pad: bool,
    /// How packets are sent: packet (a packet socket), or xdp (`AF_XDP`: a transmit queue for each
    /// thread)
    #[arg(long, value_name = "WAY", default_value = "packet",
        value_parser = arguments::word(["packet", "xdp"], way))]
    via: Way,
    /// Number of threads that send; packets of one pair of hosts stay in order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    threads: usize,
    /// Memory for packets: what fits is read once, of a larger input so much is read ahead
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = arguments::size)]
    memory: u64,
    #[command(flatten)]
    reading: ReadingFlags,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Which way frames go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Packet,
    Xdp,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct PaceFlags {
    /// Speed as a multiple of the captured one: x2, x0.5
    #[arg(long, value_name = "xN", value_parser = speed)]
    speed: Option<u64>,
    /// Rate in gigabits a second
    #[arg(long, value_name = "RATE", value_parser = gigabits)]
    gbit: Option<u64>,
    /// Rate in packets a second
    #[arg(long, value_name = "RATE", value_parser = packets)]
    pps: Option<u64>,
    /// As fast as the interface takes them
    #[arg(long)]
    top: bool,
}

impl PaceFlags {
    fn pace(&self) -> Pace {
        let speed = self.speed.map(|speed_millionths| Pace::Captured { speed_millionths });
        let bits = self.gbit.map(|per_second| Pace::Bits { per_second });
        let packets = self.pps.map(|per_1000_seconds| Pace::Packets { per_1000_seconds });
        let top = self.top.then_some(Pace::Top);
        speed.or(bits).or(packets).or(top).unwrap_or(Pace::ORIGINAL)
    }
}

fn speed(text: &str) -> Result<u64, String> {
    arguments::scaled(text.strip_prefix('x').unwrap_or(text), 1_000_000)
}

fn gigabits(text: &str) -> Result<u64, String> {
    arguments::scaled(text, 1_000_000_000)
}

fn packets(text: &str) -> Result<u64, String> {
    arguments::scaled(text, 1000)
}

fn way(text: &str) -> Result<Way, String> {
    match text {
        "packet" => Ok(Way::Packet),
        "xdp" => Ok(Way::Xdp),
        _ => Err("packet or xdp".to_owned()),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=THREADS_MAX).contains(count));
    count.ok_or_else(|| format!("1 to {THREADS_MAX}"))
}

/// Sends the packets of a file or a volume over an interface.
pub fn run(flags: &Flags) -> Outcome {
    let volume = asked_for(flags)?;
    let (outlets, limits) = open_outlets(flags)?;
    let options = Options {
        pace: flags.pace.pace(),
        loops: NonZeroU64::new(flags.loops),
        rewrite: if flags.unique { Rewrite::Addresses } else { Rewrite::Nothing },
        pad: flags.pad,
        limits,
        memory_bytes: flags.memory,
    };
    let extracts = Extracts::default();
    let input = match volume {
        Some(extracted) => extracts.input(extracted),
        None => file_input(&flags.input),
    };
    let report = send(&options, input, outlets);
    let mut report = extracts.join(report)?;
    report.broken_off.dedup();
    let text = if flags.json {
        machine_view::replayed_json(&report)
    } else {
        machine_view::replayed(&report)
    };
    stdout::print(&text)?;
    // Endless loops have no other end.
    let is_asked_for = Report { is_stopped: report.is_stopped && flags.loops > 0, ..report };
    Ok(Verdict::clean_if(is_asked_for.is_clean()))
}

/// One way out for each thread, all on the same interface, and what it takes.
fn open_outlets(flags: &Flags) -> Result<(Vec<Box<dyn Outlet>>, FrameLimits), capture::Error> {
    let Flags { interface, threads, via, .. } = flags;
    match via {
        Way::Packet => {
            let open = |_| Transmitter::open(interface);
            let outlets = (0..*threads).map(open).collect::<Result<Vec<_>, _>>()?;
            Ok(boxed(outlets, Transmitter::limits))
        }
        Way::Xdp => {
            let threads = u32::try_from(*threads).expect("few threads");
            let outlets = XdpTransmitter::open_queues(interface, threads)?;
            Ok(boxed(outlets, XdpTransmitter::limits))
        }
    }
}

fn boxed<O: Outlet + 'static>(
    outlets: Vec<O>,
    limits: fn(&O) -> FrameLimits,
) -> (Vec<Box<dyn Outlet>>, FrameLimits) {
    let limits = outlets.first().map(limits).expect("there is at least one thread");
    let boxed = outlets.into_iter().map(|outlet| -> Box<dyn Outlet> { Box::new(outlet) });
    (boxed.collect(), limits)
}

fn send(
    options: &Options,
    input: Input<'_>,
    outlets: Vec<Box<dyn Outlet>>,
) -> anyhow::Result<Report> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("replay");
    let report = ::replay::replay(options, input, outlets, &SystemClock, &mut |state| {
        let text = || machine_view::replay_progress(state);
        match state.total_packets {
            Some(total) => progress.share(state.packets, total, &|_| text()),
            None => progress.text(&text),
        }
        stop.flow()
    });
    progress.finish();
    match report {
        Err(::replay::Error::Capture(error @ capture::Error::NotACapture { .. })) => {
            bail!("{error}; to replay a volume give a query, '' for all of it")
        }
        report => Ok(report?),
    }
}

fn file_input(path: &Path) -> Input<'_> {
    let open = move || -> Result<Box<dyn Source>, capture::Error> {
        Ok(Box::new(FileSource::open(path, FileOptions::default())?))
    };
    Input { open: Box::new(open), is_repeatable: path != Path::new("-") }
}

/// What was asked for, where it is packets of a volume.
fn asked_for(flags: &Flags) -> anyhow::Result<Option<Extracted>> {
    if flags.query.is_empty() {
        return match flags.reading.given() {
            Some(flag) => {
                let text =
                    format!("{flag} is about a volume, which takes a query: '' for all of it");
                Err(Usage(text).into())
            }
            None => Ok(None),
        };
    }
    let query_text = flags.query.join(" ");
    Ok(Some(Extracted {
        options: flags.reading.options(flags.input.clone())?,
        query: arguments::query(&query_text)?,
        query_text,
        is_followed: false,
        stop: StopFlag::default(),
    }))
}

/// The extracts of all loops.
#[derive(Clone, Default)]
struct Extracts(Arc<Mutex<Vec<Extract>>>);

impl Extracts {
    fn input(&self, extracted: Extracted) -> Input<'static> {
        let extracts = self.clone();
        let open = move || -> Result<Box<dyn Source>, capture::Error> {
            let (source, extract) = extracted.clone().start()?;
            stage::lock(&extracts.0).push(extract);
            Ok(Box::new(source))
        };
        Input { open: Box::new(open), is_repeatable: true }
    }

    /// Adds what is missing to a report. An extract that failed is why there was nothing to send.
    fn join(self, report: anyhow::Result<Report>) -> anyhow::Result<Report> {
        let threads = core::mem::take(&mut *stage::lock(&self.0));
        let mut missing = Vec::new();
        for thread in threads {
            let statement = thread.join().expect("a panic aborts")?;
            missing.extend(statement.map(|lines| lines.replace('\n', "; ")));
        }
        let mut report = report?;
        report.broken_off.extend(missing);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_exactly_or_not_at_all() {
        assert_eq!(speed("x2"), Ok(2_000_000));
        assert_eq!(speed("0.5"), Ok(500_000));
        assert_eq!(gigabits("0.1"), Ok(100_000_000));
        assert_eq!(gigabits("10"), Ok(10_000_000_000));
        assert_eq!(packets("148809.5"), Ok(148_809_500));
        for text in ["", ".", "x", "0", "-1", "1e6", "1,5", "0.0000000001", "99999999999999999999"]
        {
            assert!(speed(text).is_err(), "{text}");
        }
        assert_eq!((threads("1"), threads("64")), (Ok(1), Ok(64)));
        assert!(threads("0").is_err() && threads("65").is_err());
    }
}
