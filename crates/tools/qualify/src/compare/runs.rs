//! Runs of contestants, and what they say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::{rate, real, whole};

/// What a comparison found.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Written to; else they were read, because one of them may only be read.
    pub is_write: bool,
    /// The targets, in the order given.
    pub targets: Vec<Contender>,
    /// Each of the others against the first.
    pub effects: Vec<EffectFound>,
    /// It was broken off; only whole rounds count.
    pub is_interrupted: bool,
}

/// What was found of one of the targets.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Contender {
    /// What it is called.
    pub name: String,
    /// Bytes a second: the median of its runs.
    pub bytes_per_s: u64,
    /// The interval that holds their mean with 95 %, from windows of the runs.
    pub low_bytes_per_s: u64,
    /// Upper end of the interval.
    pub high_bytes_per_s: u64,
    /// What a run guarantees: the median.
    pub guaranteed_bytes_per_s: u64,
    /// Share of the variance that lies between runs, in thousandths; `None` of too few windows.
    #[schemars(range(max = 1000))]
    pub between_runs: Option<u64>,
    /// Where its rates have two modes.
    pub modes: Option<TwoModes>,
    /// Where its rate changed in the course of all runs.
    pub changes: Vec<RateChange>,
    /// What separates the modes, the best first.
    pub factors: Vec<FactorFound>,
    /// Its runs, in the order of time.
    pub runs: Vec<Run>,
}

/// Two modes of a rate.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TwoModes {
    /// Rate of the slower mode.
    pub lower_bytes_per_s: u64,
    /// Rate of the faster mode.
    pub upper_bytes_per_s: u64,
    /// Runs, or windows, in the slower one, in thousandths.
    pub lower_share: u64,
    /// Where the faster one begins.
    pub cut_bytes_per_s: u64,
}

/// A rate that changed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// When, since the comparison began.
    pub begin_ns: u64,
    /// Round in which it changed.
    pub round: u32,
    /// Bytes of this target written before.
    pub bytes: u64,
    /// Where on it that was.
    pub offset: u64,
    /// Bytes a second before.
    pub before_bytes_per_s: u64,
    /// Bytes a second behind it.
    pub after_bytes_per_s: u64,
}

/// A factor that separates two modes.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FactorFound {
    /// What it is called.
    pub name: String,
    /// How much of the modes it says, in thousandths.
    pub share: u64,
    /// The chance of as much by accident, in millionths.
    pub chance: u64,
    /// What the slower mode goes with, in words.
    pub slower: String,
}

/// A target against the first one.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EffectFound {
    /// The place of the target among all, from 1.
    #[schemars(range(min = 1))]
    pub target: u32,
    /// The measure that is compared.
    pub measure: Measure,
    /// That of the target over that of the first, in thousandths.
    pub ratio: u64,
    /// The interval that holds it, in thousandths.
    pub low: u64,
    /// Upper end of the interval.
    pub high: u64,
    /// With this confidence, in thousandths.
    pub confidence: u64,
    /// The interval has 95 % and leaves out 1.
    pub differs: bool,
}

/// A measure that is compared.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes a second.
    #[default]
    Rate,
    /// What a run guarantees.
    Guaranteed,
    /// Bytes a second of a sweep.
    Sweep,
}

/// One run of one target.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number of the round, from 0.
    pub round: u32,
    /// Its turn within the round, from 0 on.
    pub turn: u32,
    /// When it began, since the comparison began.
    pub begin_ns: u64,
    /// Byte offset at which the run begins.
    pub offset: u64,
    /// Bytes written by the run.
    pub bytes: u64,
    /// Time for them, the flush at the end included.
    pub ns: u64,
    /// The highest arrival that its pool carries.
    pub guaranteed_bytes_per_s: u64,
    /// Longest write of the run.
    pub latency_ns_max: u64,
    /// Time of processors that this program had meanwhile; `None` where nothing counts it.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Windows of at least a quarter of a second.
    pub windows: Vec<RateWindow>,
    /// What was recorded when it began.
    pub facts: Vec<Fact>,
}

impl Run {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.bytes, self.ns)
    }

    /// Nanoseconds of one processor for a gigabyte (10^9 bytes) of data.
    pub fn cpu_ns_per_gb(&self) -> Option<u64> {
        let cpu_ns = self.cpu_ns.filter(|_| self.bytes > 0)?;
        Some(whole(real(cpu_ns) * 1e9 / real(self.bytes)))
    }
}

/// Some of the bytes of a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RateWindow {
    /// Bytes of the window.
    pub bytes: u64,
    /// Time for these bytes.
    pub ns: u64,
}

impl RateWindow {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.bytes, self.ns)
    }
}

/// Something that was recorded.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What it is called.
    pub name: String,
    /// Value of the fact.
    pub value: String,
}
