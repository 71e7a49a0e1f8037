//! What a replay did, and how far it is.

use core::ops::ControlFlow;

use serde::Serialize;
use units::Histogram;

use crate::sender::SenderTally;

/// Packets of the input that are not sent, by reason; counted in the first loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Skipped {
    /// The capture does not have all of their bytes.
    pub truncated: u64,
    /// Longer than the MTU of the interface allows.
    pub too_long: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// Of a link type that the interface does not take.
    pub link_type: u64,
}

impl Skipped {
    /// Sum of all reasons.
    pub fn total(&self) -> u64 {
        self.truncated + self.too_long + self.too_short + self.link_type
    }
}

/// How much later than scheduled packets were handed over to the kernel: the call had returned, so
/// this is the most it can be. No packet goes early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Timing {
    /// Half of the packets, within an eighth.
    pub p50_ns: u64,
    /// 99 of 100, within an eighth.
    pub p99_ns: u64,
    /// The longest delay, exactly.
    pub max_ns: u64,
}

impl Timing {
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        (histogram.count() > 0).then(|| Self {
            p50_ns: histogram.quantile_ns(500),
            p99_ns: histogram.quantile_ns(990),
            max_ns: histogram.max_ns(),
        })
    }
}

/// What all senders did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    tally: SenderTally,
}

impl Totals {
    pub(crate) fn add(&mut self, sender: &SenderTally) {
        let tally = &mut self.tally;
        tally.packets += sender.packets;
        tally.bytes += sender.bytes;
        tally.refusals += sender.refusals;
        tally.unchanged += sender.unchanged;
        tally.lateness.merge(&sender.lateness);
        tally.span_ns = match (tally.span_ns, sender.span_ns) {
            (Some((from, to)), Some((first, last))) => Some((from.min(first), to.max(last))),
            (one, other) => one.or(other),
        };
    }

    pub(crate) fn report(&self) -> Report {
        let SenderTally { packets, bytes, refusals, unchanged, ref lateness, span_ns } = self.tally;
        Report {
            packets,
            bytes,
            elapsed_ns: span_ns.map_or(0, |(first, last)| last - first),
            unchanged,
            refusals,
            timing: Timing::of(lateness),
            ..Report::default()
        }
    }
}

/// A replay that has ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Packets that the interface took.
    pub packets: u64,
    /// Their bytes, as frames: without preamble, checksum and gap.
    pub bytes: u64,
    /// From before the first packet to after the last.
    pub elapsed_ns: i64,
    /// Packets of a loop that can be sent; of the first one so far where it has not ended.
    pub loop_packets: u64,
    /// Packets of a loop that cannot.
    pub skipped: Skipped,
    /// Packets sent in later loops whose addresses could not be made unique, or too short for a
    /// stamp.
    pub unchanged: u64,
    /// Times that the interface's queue was full and packets were offered again.
    pub refusals: u64,
    /// Packets that the interface dropped meanwhile, of whatever sender; `None` where that is not
    /// known.
    pub interface_drops: Option<u64>,
    /// `None` where packets had no times.
    pub timing: Option<Timing>,
    /// The input did not fit into the memory given and was read while it was sent.
    pub is_streamed: bool,
    /// It was stopped before its end.
    pub is_stopped: bool,
    /// What ended the input, or the sending, early.
    pub broken_off: Vec<String>,
    /// What an operator should know.
    pub notes: Vec<String>,
}

impl Report {
    /// Whole loops that were sent.
    pub fn loops(&self) -> u64 {
        self.packets.checked_div(self.loop_packets).unwrap_or(0)
    }

    /// Packets a second; `None` where no time passed.
    pub fn packets_per_second(&self) -> Option<u64> {
        per_second(self.packets, self.elapsed_ns)
    }

    /// Bits of frames a second; `None` where no time passed.
    pub fn bits_per_second(&self) -> Option<u64> {
        per_second(self.bytes.saturating_mul(8), self.elapsed_ns)
    }

    /// Whether every packet of the input was sent, as often as asked for, and there was one.
    pub fn is_clean(&self) -> bool {
        self.packets > 0
            && self.skipped.total() == 0
            && self.unchanged == 0
            && self.interface_drops.unwrap_or(0) == 0
            && !self.is_stopped
            && self.broken_off.is_empty()
    }
}

fn per_second(count: u64, nanos: i64) -> Option<u64> {
    let nanos = u128::try_from(nanos).ok().filter(|&nanos| nanos > 0)?;
    u64::try_from(u128::from(count) * 1_000_000_000 / nanos).ok()
}

/// How far a replay is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Packets laid into memory so far, before the first is sent.
    pub loaded_packets: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Since the sending began.
    pub elapsed_ns: i64,
    /// Packets to be sent in all; `None` where that is not known.
    pub total_packets: Option<u64>,
}

/// Takes how far a replay is, and may stop it in order.
pub(crate) type Tell<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;
