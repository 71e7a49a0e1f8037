//! What happened, by name: crashes, faults, and which rare branches were reached.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Of the code, or of a file.
type Name = Cow<'static, str>;

/// Counts by name. Names begin with their group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counters {
    counts: BTreeMap<Name, u64>,
    most: BTreeMap<Name, u64>,
}

impl Counters {
    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        *self.counts.entry(Cow::Borrowed(name)).or_default() += count;
    }

    /// Keeps the largest.
    pub(crate) fn peak(&mut self, name: &'static str, value: u64) {
        let most = self.most.entry(Cow::Borrowed(name)).or_default();
        *most = value.max(*most);
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (name, value) in &other.most {
            let most = self.most.entry(name.clone()).or_default();
            *most = (*value).max(*most);
        }
    }

    /// Sums and maxima, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.counts.iter().chain(&self.most).map(|(name, count)| (name.as_ref(), *count))
    }

    /// Sums and maxima for a file.
    pub(crate) fn to_json(&self) -> (Value, Value) {
        (json!(self.counts), json!(self.most))
    }

    /// What [`Counters::to_json`] wrote; `None`: something else.
    pub(crate) fn of_json(counts: &Value, most: &Value) -> Option<Self> {
        let numbers = |from: &Map<String, Value>| {
            let pair = |(name, count): (&String, &Value)| {
                Some((Cow::Owned(name.clone()), count.as_u64()?))
            };
            from.iter().map(pair).collect::<Option<BTreeMap<Name, u64>>>()
        };
        Some(Self { counts: numbers(counts.as_object()?)?, most: numbers(most.as_object()?)? })
    }
}
