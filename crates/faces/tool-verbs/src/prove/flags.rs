//! The flags of `prove`, and what they mean together.

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use ::prove::{Ask, Load, Sizes};
use clap::Args;

use crate::arguments;
use crate::failure::Usage;

/// Packets of a run, if neither their number nor a time was given.
const PACKETS: u64 = 1_000_000;
/// Bits a second, if no rate was given.
const BITS_PER_SECOND: u64 = 1_000_000_000;
/// Length of each run of a search.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// Prove that nothing is lost, or find the rate where that ends.
///
/// Sends numbered packets through a pair of interfaces in a network namespace of its own, or from
/// one given interface to another, records them with `wirespool record` in a process of its own,
/// reads them back out of the volume, and compares each, byte for byte, with what was sent. What is
/// missing is reported with its cause, and the sum is exact: offered = stored + every loss. Needs
/// root, or user namespaces; between given interfaces, the capability to open raw sockets.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool prove                                        a mix of sizes at 1 Gbit/s
  wirespool prove --frames 64 --pps 500000 --duration 10s
  wirespool prove --frames traffic.pcapng --top
  wirespool prove --find-limit --frames 1514
  wirespool prove --interfaces eth2 eth3 --rate 10G --duration 60s --volume /data/spool
  wirespool prove --top -- --kernel-ring 256M --pool 2G

A volume that is given is recorded into, over its oldest packets. Without one, a file in TMPDIR is
made and removed. Behind -- stand options of `wirespool record`.

Exit code 1 when a packet was lost, altered, doubled or reordered; 5 when nothing was lost, but the
sender did not reach the rate.")]
pub struct Flags {
    /// Record into this volume
    #[arg(long, value_name = "VOLUME")]
    volume: Option<PathBuf>,
    /// Length of the frames in bytes, `imix` (7 of 64, 4 of 576, 5 of 1514), or a capture file
    #[arg(long, value_name = "FRAMES", default_value = "imix")]
    frames: String,
    /// Conversations that the frames belong to
    #[arg(long, value_name = "N", default_value_t = 1000)]
    flows: u32,
    #[command(flatten)]
    rate: RateFlags,
    /// Number of packets to send, rounded up to whole rounds of the mix [default: 1000000]
    #[arg(long, value_name = "N", conflicts_with = "duration",
        value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Time to send; in a search, the time of each run [default there: 2s]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    duration: Option<Duration>,
    /// Find the highest rate without loss
    #[arg(long, conflicts_with = "packets")]
    find_limit: bool,
    /// Runs without loss that a rate needs in a search
    #[arg(long, value_name = "N", default_value_t = 3, requires = "find_limit",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Send on one interface and record on the other
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    interfaces: Option<Vec<String>>,
    /// Report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Options of `wirespool record`
    #[arg(last = true, value_name = "OPTIONS")]
    recorder: Vec<OsString>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct RateFlags {
    /// Rate in bits of frames a second, such as 500M or 2.5G [default: 1G]
    #[arg(long, value_name = "RATE", value_parser = arguments::bits)]
    rate: Option<u64>,
    /// Rate in packets a second
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u64).range(1..))]
    pps: Option<u64>,
    /// As fast as the interface takes them
    #[arg(long)]
    top: bool,
}

/// The load that is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Frames {
    Made(Sizes),
    Capture(PathBuf),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) volume: Option<PathBuf>,
    pub(super) frames: Frames,
    pub(super) flows: u32,
    pub(super) ask: Ask,
    amount: Amount,
    /// Of each run of a search.
    pub(super) duration: Duration,
    pub(super) finds_limit: bool,
    pub(super) repeats: u32,
    pub(super) interfaces: Option<[String; 2]>,
    pub(super) recorder: Vec<OsString>,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Packets(u64),
    Time(Duration),
}

impl Flags {
    pub(super) fn plan(self) -> Result<Plan, Usage> {
        let RateFlags { rate, pps, top } = self.rate;
        let default = if self.find_limit { Ask::Top } else { Ask::Bits(BITS_PER_SECOND) };
        let ask = rate.map(Ask::Bits).or(pps.map(Ask::Packets)).or(top.then_some(Ask::Top));
        if self.find_limit && top {
            return Err(Usage("--find-limit begins slowly; give it --rate, --pps or none".into()));
        }
        if top && self.duration.is_some() {
            return Err(Usage("at top speed give a number of packets (--packets)".to_owned()));
        }
        let amount = match (self.packets, self.duration) {
            (_, Some(time)) => Amount::Time(time),
            (packets, None) => Amount::Packets(packets.unwrap_or(PACKETS)),
        };
        Ok(Plan {
            volume: self.volume,
            frames: frames(self.frames)?,
            flows: self.flows,
            ask: ask.unwrap_or(default),
            amount,
            duration: self.duration.unwrap_or(SEARCH_TIME),
            finds_limit: self.find_limit,
            repeats: self.repeats,
            interfaces: self.interfaces.and_then(|names| <[String; 2]>::try_from(names).ok()),
            recorder: self.recorder,
        })
    }
}

impl Plan {
    /// Packets of a run, whole rounds of them.
    pub(super) fn packets(&self, load: &Load) -> u64 {
        let packets = match self.amount {
            Amount::Packets(packets) => packets,
            Amount::Time(time) => match self.ask {
                Ask::Packets(per_second) => amount(per_second, time),
                Ask::Bits(per_second) => load.packets_of_bits(amount(per_second, time)),
                // Refused above.
                Ask::Top => 0,
            },
        };
        load.rounds(packets).saturating_mul(load.round())
    }
}

/// What a rate a second comes to in a time.
pub(super) fn amount(per_second: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(per_second) * time.as_millis() / 1000).unwrap_or(u64::MAX)
}

/// A length, a mix, or else a file.
fn frames(text: String) -> Result<Frames, Usage> {
    match text.parse() {
        Ok(len) => Ok(Frames::Made(Sizes::Fixed(len))),
        Err(_) if text == "imix" => Ok(Frames::Made(Sizes::Imix)),
        Err(_) if text.is_empty() => Err(Usage("--frames: a length, imix or a file".to_owned())),
        Err(_) => Ok(Frames::Capture(text.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_a_length_a_mix_or_a_file() {
        let check = |text: &str, expect| assert_eq!(frames(text.to_owned()).ok(), Some(expect));
        check("64", Frames::Made(Sizes::Fixed(64)));
        check("imix", Frames::Made(Sizes::Imix));
        check("./64", Frames::Capture("./64".into()));
        assert!(frames(String::new()).is_err());
    }
}
