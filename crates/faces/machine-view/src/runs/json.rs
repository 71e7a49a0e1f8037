//! Repeated runs as JSON: the keys of hyperfine, and ours beside them.
//!
//! `results[]` has hyperfine's `command`, `mean`, `stddev`, `median`, `user`, `system`, `min`,
//! `max` (seconds), `times`, `memory_usage_byte`, `exit_codes` and `parameters`; its readers pass
//! over the rest.

use std::collections::BTreeMap;

use ::runs::{Against, Contest, Judged, Order, Run, Series, Unit};
use page::safe::json_pretty;
use serde::Serialize;
use statistics::Effect;

use super::against::Held;

/// Of what is beside hyperfine's keys.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct File<'a> {
    version: u32,
    order: Order,
    warm_ups: u32,
    is_interrupted: bool,
    took_ns: u64,
    results: Vec<Results<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    against: Vec<Named<'a>>,
}

/// A series, in the unit of files.
#[derive(Serialize)]
struct Results<'a> {
    command: &'a str,
    unit: Unit,
    #[serde(flatten)]
    judged: Option<Judged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<f64>,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory_usage_byte: Vec<Option<u64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_first: Option<Ratio>,
    runs: &'a [Run],
}

#[derive(Serialize)]
struct Ratio {
    #[serde(flatten)]
    effect: Effect,
    differs: bool,
}

/// What became of a command or figure, in the unit of files.
#[derive(Serialize)]
struct Named<'a> {
    command: &'a str,
    #[serde(flatten)]
    against: Against,
}

/// Everything that was found; `against` where it was held against another day.
pub fn runs_json(found: &Contest, against: &[Held<'_>]) -> String {
    json_pretty(&File {
        version: VERSION,
        order: found.plan.order,
        warm_ups: found.plan.warm_ups,
        is_interrupted: found.is_interrupted,
        took_ns: found.ns,
        results: found.series.iter().map(results).collect(),
        against: against.iter().map(named).collect(),
    })
}

fn results(series: &Series) -> Results<'_> {
    let (unit, scale) = (series.subject.unit, series.subject.unit.scale());
    let taken = || series.runs.iter().filter_map(|run| run.ran.taken.as_ref());
    let mean = |of: &dyn Fn(&::runs::Taken) -> f64| {
        let values = statistics::Sample::new(taken().map(of));
        values.map(|values| values.mean())
    };
    let parameters = series.subject.parameters.iter();
    let ratio = |effect: &Effect| Ratio { effect: *effect, differs: effect.differs() };
    Results {
        command: &series.subject.name,
        unit,
        judged: series.judged.as_ref().map(|judged| judged.scaled(scale)),
        user: mean(&|taken| taken.cpu.user.as_secs_f64()),
        system: mean(&|taken| taken.cpu.system.as_secs_f64()),
        times: series.values().into_iter().map(|value| value * scale).collect(),
        memory_usage_byte: taken().map(::runs::Taken::known_memory_bytes).collect(),
        exit_codes: taken().map(|taken| taken.code).collect(),
        parameters: parameters.map(|it| (it.name.as_str(), it.value.as_str())).collect(),
        ratio_to_first: series.effect.as_ref().map(ratio),
        runs: &series.runs,
    }
}

fn named<'a>(held: &Held<'a>) -> Named<'a> {
    let scale = held.unit.scale();
    let (before, now) = (held.against.before * scale, held.against.now * scale);
    Named { command: held.name, against: Against { before, now, ..held.against } }
}
