//! Repeated runs as JSON: the keys of hyperfine, and ours beside them.
//!
//! `results[]` has hyperfine's `command`, `mean`, `stddev`, `median`, `user`, `system`, `min`,
//! `max` (seconds), `times`, `memory_usage_byte`, `exit_codes` and `parameters`; its readers pass
//! over the rest.

use std::collections::BTreeMap;

use ::runs::{Against, Contest, Fact, Judged, Order, Run, Series, TwoModes, Unit};
use page::safe::json_pretty;
use serde::Serialize;
use statistics::{Cell, Effect, Mode, Separation};

use super::against::{Held, word};

/// Of what is beside hyperfine's keys.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct FileJson<'a> {
    version: u32,
    order: &'static str,
    warm_ups: u32,
    is_interrupted: bool,
    took_ns: u64,
    results: Vec<ResultJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    against: Vec<HeldJson<'a>>,
}

#[derive(Serialize)]
struct ResultJson<'a> {
    command: &'a str,
    unit: &'static str,
    #[serde(flatten)]
    judged: Option<JudgedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<f64>,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory_usage_byte: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_first: Option<RatioJson>,
    runs: Vec<RunJson<'a>>,
}

#[derive(Serialize)]
struct JudgedJson {
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
    median_low: f64,
    median_high: f64,
    spread: f64,
    outliers: Vec<usize>,
    modes: Option<ModesJson>,
    changes: Vec<ChangeJson>,
    drift: Option<DriftJson>,
}

#[derive(Serialize)]
struct ModesJson {
    lower: ModeJson,
    upper: ModeJson,
    factors: Vec<FactorJson>,
    signs: Vec<FactorJson>,
    parts: Vec<PartJson>,
}

#[derive(Serialize)]
struct ModeJson {
    count: usize,
    median: f64,
}

#[derive(Serialize)]
struct FactorJson {
    name: String,
    share: f64,
    chance: f64,
    lower: String,
    upper: String,
}

#[derive(Serialize)]
struct PartJson {
    name: &'static str,
    lower: f64,
    upper: f64,
}

#[derive(Serialize)]
struct ChangeJson {
    run: usize,
    before: f64,
    after: f64,
    chance: f64,
}

#[derive(Serialize)]
struct DriftJson {
    share: f64,
    chance: f64,
}

#[derive(Serialize)]
struct RatioJson {
    ratio: f64,
    low: f64,
    high: f64,
    confidence: f64,
    differs: bool,
}

#[derive(Serialize)]
struct RunJson<'a> {
    turn: u32,
    begin_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<UsedJson>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<&'a str, serde_json::Value>,
}

#[derive(Serialize)]
struct UsedJson {
    user_ns: u64,
    system_ns: u64,
    major_faults: u64,
    minor_faults: u64,
    blocks_in: u64,
    blocks_out: u64,
    waits: u64,
    preemptions: u64,
}

#[derive(Serialize)]
struct HeldJson<'a> {
    command: &'a str,
    before: f64,
    now: f64,
    ratio: f64,
    low: f64,
    high: f64,
    chance: f64,
    verdict: &'static str,
}

/// Everything that was found; `against` where it was held against another day.
pub fn runs_json(found: &Contest, against: &[Held<'_>]) -> String {
    json_pretty(&FileJson {
        version: VERSION,
        order: match found.plan.order {
            Order::Turns => "turns",
            Order::Random => "random",
        },
        warm_ups: found.plan.warm_ups,
        is_interrupted: found.is_interrupted,
        took_ns: found.ns,
        results: found.series.iter().map(result).collect(),
        against: against.iter().map(held).collect(),
    })
}

/// What turns values into the unit of the file: seconds, bytes a second, or a count a second.
pub(super) fn scale(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Nanoseconds => (1e-9, "s"),
        Unit::BytesPerSecond => (1.0, "B/s"),
        Unit::PerSecond => (1.0, "1/s"),
    }
}

fn result(series: &Series) -> ResultJson<'_> {
    let (scale, unit) = scale(series.subject.unit);
    let taken = || series.runs.iter().filter_map(|run| run.ran.taken.as_ref());
    let mean = |of: &dyn Fn(&::runs::Taken) -> f64| {
        let values = statistics::Sample::new(taken().map(of));
        values.map(|values| values.mean())
    };
    ResultJson {
        command: &series.subject.name,
        unit,
        judged: series.judged.as_ref().map(|judged| self::judged(judged, scale)),
        user: mean(&|taken| taken.cpu.user.as_secs_f64()),
        system: mean(&|taken| taken.cpu.system.as_secs_f64()),
        times: series.values().into_iter().map(|value| value * scale).collect(),
        memory_usage_byte: taken().map(|taken| taken.memory_bytes_max).collect(),
        exit_codes: taken().map(|taken| taken.code).collect(),
        parameters: series
            .subject
            .parameters
            .iter()
            .map(|parameter| (parameter.name.as_str(), parameter.value.as_str()))
            .collect(),
        ratio_to_first: series.effect.as_ref().map(ratio),
        runs: series.runs.iter().map(run).collect(),
    }
}

fn judged(judged: &Judged, scale: f64) -> JudgedJson {
    JudgedJson {
        mean: judged.mean * scale,
        stddev: judged.standard_deviation.map(|deviation| deviation * scale),
        median: judged.median * scale,
        min: judged.min * scale,
        max: judged.max * scale,
        median_low: judged.low * scale,
        median_high: judged.high * scale,
        spread: judged.spread,
        outliers: judged.outliers.iter().map(|at| at + 1).collect(),
        modes: judged.modes.as_ref().map(|modes| self::modes(modes, scale)),
        changes: judged
            .changes
            .iter()
            .map(|change| ChangeJson {
                run: change.at + 1,
                before: change.before * scale,
                after: change.after * scale,
                chance: change.p,
            })
            .collect(),
        drift: judged.drift.map(|drift| DriftJson { share: drift.share, chance: drift.p }),
    }
}

fn modes(modes: &TwoModes, scale: f64) -> ModesJson {
    let mode = |mode: Mode| ModeJson { count: mode.count, median: mode.median * scale };
    let factor = |found: &Separation| FactorJson {
        name: found.name.clone(),
        share: found.share,
        chance: found.p,
        lower: found.lower.to_string(),
        upper: found.upper.to_string(),
    };
    let parts = modes.parts.iter().map(|part| PartJson {
        name: part.name,
        lower: part.lower_ns * scale,
        upper: part.upper_ns * scale,
    });
    ModesJson {
        lower: mode(modes.lower),
        upper: mode(modes.upper),
        factors: modes.factors.iter().map(factor).collect(),
        signs: modes.signs.iter().map(factor).collect(),
        parts: parts.collect(),
    }
}

fn ratio(effect: &Effect) -> RatioJson {
    RatioJson {
        ratio: effect.ratio,
        low: effect.low,
        high: effect.high,
        confidence: effect.confidence,
        differs: effect.differs(),
    }
}

fn run(run: &Run) -> RunJson<'_> {
    let fact = |fact: &Fact| {
        Some(match fact.value.as_ref()? {
            Cell::Number(number) => serde_json::Value::from(*number),
            Cell::Word(word) => serde_json::Value::from(word.as_str()),
        })
    };
    let facts = run.ran.facts.iter().filter_map(|it| Some((it.name.as_str(), fact(it)?)));
    let nanos = |time: core::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    RunJson {
        turn: run.turn,
        begin_ns: run.begin_ns,
        used: run.ran.taken.map(|taken| UsedJson {
            user_ns: nanos(taken.cpu.user),
            system_ns: nanos(taken.cpu.system),
            major_faults: taken.major_faults,
            minor_faults: taken.minor_faults,
            blocks_in: taken.blocks_in,
            blocks_out: taken.blocks_out,
            waits: taken.waits,
            preemptions: taken.preemptions,
        }),
        facts: facts.collect(),
    }
}

fn held<'a>(held: &Held<'a>) -> HeldJson<'a> {
    let (scale, _) = scale(held.unit);
    let Against { before, now, ratio, low, high, p, verdict } = held.against;
    let (before, now, verdict) = (before * scale, now * scale, word(verdict));
    HeldJson { command: held.name, before, now, ratio, low, high, chance: p, verdict }
}
