//! One run: what was asked for, what happened, and the verdict. Fields are keys in JSON, in this
//! order.

use core::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use units::Epoch;

use crate::account::Account;
use crate::judge::Finding;
use crate::search::{Limit, Seen};

/// A sender within this many thousandths of the rate asked for has reached it.
const REACHED_THOUSANDTHS: u128 = 980;
const NANOS: u128 = 1_000_000_000;

/// How fast packets are to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Bits of frames a second.
    Bits(u64),
    /// Packets a second.
    Packets(u64),
    /// As fast as the interface takes them.
    Top,
}

impl Serialize for Ask {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Default, Serialize)]
        struct Rates {
            asked_packets_per_s: Option<u64>,
            asked_bits_per_s: Option<u64>,
        }
        let none = Rates::default();
        let rates = match *self {
            Self::Packets(rate) => Rates { asked_packets_per_s: Some(rate), ..none },
            Self::Bits(rate) => Rates { asked_bits_per_s: Some(rate), ..none },
            Self::Top => none,
        };
        rates.serialize(to)
    }
}

/// What the sender did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Sent {
    /// Packets that the interface took.
    #[serde(skip)]
    pub packets: u64,
    /// Their bytes, as frames.
    #[serde(rename = "frame_bytes")]
    pub bytes: u64,
    /// From before the first to after the last.
    pub elapsed_ns: i64,
}

impl Sent {
    fn per_second(&self, count: u64) -> Option<u64> {
        let nanos = u128::try_from(self.elapsed_ns).ok().filter(|&nanos| nanos > 0)?;
        u64::try_from(u128::from(count) * NANOS / nanos).ok()
    }

    /// Packets a second; `None` where no time passed.
    pub fn packets_per_second(&self) -> Option<u64> {
        self.per_second(self.packets)
    }

    /// Bits of frames a second; `None` where no time passed.
    pub fn bits_per_second(&self) -> Option<u64> {
        self.per_second(self.bytes.saturating_mul(8))
    }

    /// Whether that is what was asked for.
    pub fn has_reached(&self, ask: Ask) -> bool {
        let (reached, asked) = match ask {
            Ask::Top => return true,
            Ask::Bits(asked) => (self.bits_per_second(), asked),
            Ask::Packets(asked) => (self.packets_per_second(), asked),
        };
        // A burst too short to take time was fast enough.
        reached.is_none_or(|reached| {
            u128::from(reached) * 1000 >= u128::from(asked) * REACHED_THOUSANDTHS
        })
    }
}

/// What was sent, with its rates.
fn serialize_sent<S: Serializer>(sent: &Sent, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithRates<'a> {
        #[serde(flatten)]
        sent: &'a Sent,
        packets_per_s: Option<u64>,
        bits_per_s: Option<u64>,
    }
    let (packets_per_s, bits_per_s) = (sent.packets_per_second(), sent.bits_per_second());
    WithRates { sent, packets_per_s, bits_per_s }.serialize(to)
}

/// What the recorder says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Recorder {
    /// Packets that it says it stored.
    pub stored: u64,
    /// Packets that the kernel dropped.
    pub kernel_drops: u64,
    /// Packets that found no free column.
    pub writer_drops: u64,
    /// Times that the kernel's ring was full; `None` is unknown.
    pub ring_freezes: Option<u64>,
    /// Packets stored without a row in the index.
    pub unindexed: u64,
    /// Processor time of the process, from its start to its end.
    #[serde(rename = "cpu_ns", serialize_with = "serialize_ns", skip_deserializing)]
    pub cpu: Duration,
    /// Of that for a gigabyte (10^9) of frames offered; `None` of nothing.
    #[serde(skip_deserializing)]
    pub cpu_ns_per_gigabyte: Option<u64>,
    /// For a million packets offered.
    #[serde(skip_deserializing)]
    pub cpu_ns_per_million_packets: Option<u64>,
    /// The longest write.
    pub write_latency_ns_max: u64,
    /// Columns of the pool.
    pub pool_columns: u64,
    /// Most of them in use at a time.
    pub pool_columns_used_max: u64,
    /// Number of this opening of the volume.
    #[serde(skip_serializing)]
    pub epoch: Epoch,
}

fn serialize_ns<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Recorder {
    /// With its processor time for what was offered.
    #[must_use]
    pub fn offered(self, sent: &Sent) -> Self {
        let per = |unit: u128, count: u64| {
            let nanos = self.cpu.as_nanos().checked_mul(unit)?;
            u64::try_from(nanos.checked_div(u128::from(count))?).ok()
        };
        Self {
            cpu_ns_per_gigabyte: per(1_000_000_000, sent.bytes),
            cpu_ns_per_million_packets: per(1_000_000, sent.packets),
            ..self
        }
    }
}

/// A run that has ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Trial {
    /// Where each packet went.
    #[serde(flatten)]
    pub account: Account,
    /// The rate that was asked for.
    #[serde(flatten)]
    pub ask: Ask,
    /// What the sender did.
    #[serde(flatten, serialize_with = "serialize_sent")]
    pub sent: Sent,
    /// Packets read out of the volume.
    #[serde(skip)]
    pub read: u64,
    /// What the recorder says.
    pub recorder: Recorder,
    /// The first flaws, by their packets.
    pub findings: Vec<Finding>,
    /// What makes the run say nothing, or less than it seems, one line each.
    pub notes: Vec<String>,
    /// It was stopped before its end.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
}

/// A search for the highest rate without loss.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Where it ended; `None` if it was stopped.
    pub limit: Option<Limit>,
    /// All runs, in the order in which they were made.
    pub trials: Vec<Trial>,
}

impl Found {
    /// Whether a rate without loss was found.
    pub fn verdict(&self) -> Verdict {
        match self.limit {
            None => Verdict::CannotJudge,
            Some(Limit::Nothing { .. }) => Verdict::Lost,
            Some(Limit::Recorder { .. } | Limit::Sender { .. }) => Verdict::Lossless,
        }
    }
}

/// What a run shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Each packet is there, once, unchanged and in its place, and the recorder says so.
    Lossless,
    /// Something is not as it was sent, or the recorder's counters are not true.
    Lost,
    /// Nothing was lost, but not what was asked for was offered.
    #[serde(rename = "cannot judge")]
    CannotJudge,
}

impl Trial {
    /// Verdict of the trial.
    pub fn verdict(&self) -> Verdict {
        if !self.account.is_flawless() || !self.is_true() {
            Verdict::Lost
        } else if self.is_stopped || self.sent.packets == 0 || !self.sent.has_reached(self.ask) {
            Verdict::CannotJudge
        } else {
            Verdict::Lossless
        }
    }

    /// What it shows to a search; `None` if it was stopped.
    pub fn seen(&self) -> Option<Seen> {
        let reached = self.sent.packets_per_second().unwrap_or(u64::MAX);
        match self.verdict() {
            Verdict::Lossless => Some(Seen::Lossless),
            Verdict::Lost => Some(Seen::Lost),
            Verdict::CannotJudge => (!self.is_stopped).then_some(Seen::Slow { reached }),
        }
    }

    /// Whether as many packets came out of the volume as the recorder says it stored.
    pub fn is_true(&self) -> bool {
        self.recorder.stored == self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> Trial {
        Trial {
            ask: Ask::Packets(1000),
            sent: Sent { packets: 2000, bytes: 128_000, elapsed_ns: 2_000_000_000 },
            account: Account { offered: 2000, stored: 2000, ..Account::default() },
            read: 2000,
            recorder: Recorder { stored: 2000, ..Recorder::default() },
            findings: Vec::new(),
            notes: Vec::new(),
            is_stopped: false,
        }
    }

    #[test]
    fn a_run_is_judged_by_what_was_offered_and_what_came_back() {
        let clean = trial();
        assert_eq!(clean.verdict(), Verdict::Lossless);
        let lost = Account { stored: 1999, kernel_drops: 1, ..clean.account };
        assert_eq!(Trial { account: lost, ..clean.clone() }.verdict(), Verdict::Lost);
        let boasting = Recorder { stored: 2001, ..clean.recorder };
        assert_eq!(Trial { recorder: boasting, ..clean.clone() }.verdict(), Verdict::Lost);
        let stopped = Trial { is_stopped: true, ..clean.clone() };
        assert_eq!(stopped.verdict(), Verdict::CannotJudge);
        for (ask, expect) in [
            (Ask::Packets(1020), Verdict::Lossless),
            (Ask::Packets(1021), Verdict::CannotJudge),
            (Ask::Bits(512_000), Verdict::Lossless),
            (Ask::Bits(530_000), Verdict::CannotJudge),
            (Ask::Top, Verdict::Lossless),
        ] {
            assert_eq!(Trial { ask, ..clean.clone() }.verdict(), expect, "{ask:?}");
        }
    }

    #[test]
    fn processor_time_is_told_for_what_was_offered() {
        // 4 ms for 128 kB and 2000 packets.
        let recorder = Recorder { cpu: Duration::from_millis(4), ..Recorder::default() };
        let told = recorder.offered(&trial().sent);
        assert_eq!(told.cpu_ns_per_gigabyte, Some(31_250_000_000));
        assert_eq!(told.cpu_ns_per_million_packets, Some(2_000_000_000));
        assert_eq!(told.offered(&Sent::default()).cpu_ns_per_million_packets, None);
    }
}
