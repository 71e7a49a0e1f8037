//! What happened, by name: crashes, faults, and which rare branches were reached.

use std::collections::BTreeMap;

/// Counts by name. Names begin with their group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counters {
    counts: BTreeMap<&'static str, u64>,
    most: BTreeMap<&'static str, u64>,
}

impl Counters {
    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        *self.counts.entry(name).or_default() += count;
    }

    /// Keeps the largest.
    pub(crate) fn peak(&mut self, name: &'static str, value: u64) {
        let most = self.most.entry(name).or_default();
        *most = value.max(*most);
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            self.add(name, *count);
        }
        for (name, value) in &other.most {
            self.peak(name, *value);
        }
    }

    /// Sums and maxima, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counts.iter().chain(&self.most).map(|(name, count)| (*name, *count))
    }
}
