//! What the model is computed from: a file that `bench costs` and the measurements behind
//! docs/benchmarks.md fill. Each figure there says whether it was measured, read or assumed.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The file of this repository.
pub(crate) const FILE: &str = "bench/results/scale.json";

/// Figures by their names.
#[derive(Clone, Debug)]
pub(crate) struct Inputs(Value);

/// A step of a packet's way.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// Who does it: `queue`, of which there may be many, or one for all queues.
    pub(crate) thread: String,
    /// Instructions for each packet, and for each session besides.
    pub(crate) packet: f64,
    pub(crate) session: f64,
}

impl Inputs {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self(serde_json::from_str(&text).context("the figures are not JSON")?))
    }

    /// A figure: `{"value": 1, "from": "where it comes from"}`.
    pub(crate) fn get(&self, name: &str) -> Result<f64> {
        let figure = self.0.get("figures").and_then(|figures| figures.get(name));
        let figure = figure.with_context(|| format!("there is no figure {name}"))?;
        ensure!(figure.get("from").is_some_and(Value::is_string), "{name} is from nowhere");
        figure.get("value").and_then(Value::as_f64).with_context(|| format!("{name} is no number"))
    }

    /// All figures, with where they are from.
    pub(crate) fn figures(&self) -> Result<Vec<[String; 3]>> {
        let figures = self.0.get("figures").and_then(Value::as_object).context("no figures")?;
        let line = |(name, figure): (&String, &Value)| {
            let value = self.get(name)?;
            let from = figure.get("from").and_then(Value::as_str).unwrap_or_default();
            Ok([name.clone(), crate::table::number(value), from.to_owned()])
        };
        figures.iter().map(line).collect()
    }

    pub(crate) fn steps(&self) -> Result<Vec<Step>> {
        let steps = self.0.get("steps").and_then(Value::as_array).context("no steps")?;
        let text = |step: &Value, key: &str| {
            let text = step.get(key).and_then(Value::as_str).map(str::to_owned);
            text.with_context(|| format!("a step has no {key}"))
        };
        let number = |step: &Value, key: &str| {
            let number = step.get(key).and_then(Value::as_f64);
            number.with_context(|| format!("a step has no {key}"))
        };
        let step = |step: &Value| {
            Ok(Step {
                name: text(step, "name")?,
                thread: text(step, "thread")?,
                packet: number(step, "packet")?,
                session: number(step, "session")?,
            })
        };
        steps.iter().map(step).collect()
    }
}

#[cfg(test)]
impl Inputs {
    /// Those of this repository.
    pub(crate) fn of_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(FILE);
        Self::read(&root).unwrap()
    }
}
