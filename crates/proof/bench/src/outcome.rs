//! What a benchmark found out, as text or JSON.

use serde_json::{Map, Value, json};

use crate::machine::Machine;
use crate::statistics::{SPREAD_MAX, Sample};

/// Lines to read, values to compute with, and verdicts.
#[derive(Debug)]
pub(crate) struct Outcome {
    title: String,
    lines: Vec<String>,
    not_proven: Vec<String>,
    values: Map<String, Value>,
    missed: bool,
}

impl Outcome {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            lines: Vec::new(),
            not_proven: Vec::new(),
            values: Map::new(),
            missed: false,
        }
    }

    pub(crate) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A limit of the measurement: what it does not show.
    pub(crate) fn not_proven(&mut self, line: impl Into<String>) {
        self.not_proven.push(line.into());
    }

    pub(crate) fn json(&mut self, key: &str, value: impl Into<Value>) {
        self.values.insert(key.to_owned(), value.into());
    }

    /// Appends to a list of values.
    pub(crate) fn push_json(&mut self, key: &str, value: Value) {
        let list = self.values.entry(key).or_insert_with(|| json!([]));
        list.as_array_mut().expect("a key is a list or a value, always").push(value);
    }

    /// Compares a ratio with its goal. Beyond the largest spread there is no verdict, unless every
    /// single value reaches the goal or none does.
    pub(crate) fn judge(&mut self, what: &str, ratio: &Sample, goal: f64) {
        let verdict = match ratio.reaches(goal) {
            Some(true) => "reached",
            Some(false) => "missed",
            None if ratio.all_reach(goal) => "reached by every single value",
            None if ratio.none_reaches(goal) => "missed by every single value",
            None => "no verdict",
        };
        self.missed |= verdict.starts_with("missed");
        let (median, spread) = (ratio.median(), ratio.spread());
        self.line(format!(
            "{what}: {median:.2} of {goal:.2}, spread {:.0} % (verdicts up to {:.0} %): {verdict}",
            spread * 100.0,
            SPREAD_MAX * 100.0,
        ));
        self.push_json(
            "verdicts",
            json!({ "what": what, "median": median, "goal": goal, "spread": spread,
                    "verdict": verdict }),
        );
    }

    /// A goal was missed.
    pub(crate) fn is_missed(&self) -> bool {
        self.missed
    }

    pub(crate) fn text(&self, before: &Machine, after: &Machine) -> String {
        let mut lines = vec![self.title.clone(), before.line()];
        lines.push(format!("load average afterwards {}", after.load()));
        lines.push(String::new());
        lines.extend(self.lines.iter().cloned());
        lines.push(String::new());
        lines.extend(self.not_proven.iter().map(|line| format!("Does not prove: {line}.")));
        lines.join("\n") + "\n"
    }

    pub(crate) fn to_json(&self, before: &Machine, after: &Machine) -> Value {
        json!({
            "benchmark": self.title,
            "machine": before.json(),
            "load_average_afterwards": after.load(),
            "values": self.values,
            "does_not_prove": self.not_proven,
            "missed": self.missed,
        })
    }
}
