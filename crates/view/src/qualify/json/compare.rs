//! A comparison as JSON.

use ::qualify as q;
use serde::{Deserialize, Serialize};

use super::{Mirror, VERSION};

use crate::safe::json_pretty;

words! {
    MeasureJson of q::Measure { Rate, Guaranteed, Sweep, }
}

mirror! {
    FactJson of q::Fact { name: String, value: String, }
    RateWindowJson of q::RateWindow { bytes: u64, ns: u64, }
    RunJson of q::Run {
        round: u32,
        turn: u32,
        begin_ns: u64,
        offset: u64,
        bytes: u64,
        ns: u64,
        guaranteed_bytes_per_s: u64,
        latency_ns_max: u64,
        cpu_ns: Option<u64>,
        windows: Vec<RateWindowJson>,
        facts: Vec<FactJson>,
    }
    TwoModesJson of q::TwoModes {
        lower_bytes_per_s: u64,
        upper_bytes_per_s: u64,
        lower_share: u64,
        cut_bytes_per_s: u64,
    }
    RateChangeJson of q::RateChange {
        begin_ns: u64,
        round: u32,
        bytes: u64,
        offset: u64,
        before_bytes_per_s: u64,
        after_bytes_per_s: u64,
    }
    FactorJson of q::FactorFound { name: String, share: u64, chance: u64, slower: String, }
    ContenderJson of q::Contender {
        name: String,
        bytes_per_s: u64,
        low_bytes_per_s: u64,
        high_bytes_per_s: u64,
        guaranteed_bytes_per_s: u64,
        between_runs: Option<u64>,
        modes: Option<TwoModesJson>,
        changes: Vec<RateChangeJson>,
        factors: Vec<FactorJson>,
        runs: Vec<RunJson>,
    }
    EffectJson of q::EffectFound {
        target: u32,
        measure: MeasureJson,
        ratio: u64,
        low: u64,
        high: u64,
        confidence: u64,
        differs: bool,
    }
    ComparisonJson of q::Comparison {
        is_write: bool,
        targets: Vec<ContenderJson>,
        effects: Vec<EffectJson>,
        is_interrupted: bool,
    }
}

#[derive(Serialize, Deserialize)]
struct FileJson {
    version: u32,
    comparison: ComparisonJson,
}

/// A comparison, as JSON.
pub fn comparison_json(found: &q::Comparison) -> String {
    json_pretty(&FileJson { version: VERSION, comparison: Mirror::of(found) })
}

/// Reads it, whatever its version.
pub(super) fn read_comparison(text: &str) -> serde_json::Result<q::Comparison> {
    serde_json::from_str(text).map(|FileJson { comparison, .. }| comparison.back())
}
