//! The connection table of netfilter: how full it is, and what it has counted.

use std::collections::BTreeMap;
use std::fs;

/// The connection table of a namespace at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conntrack {
    /// Connections in the table.
    pub count: u64,
    /// Most that it takes; 0 is no limit.
    pub max: u64,
    /// What it has counted, by the names of `/proc/net/stat/nf_conntrack`, such as `drop`.
    pub counts: BTreeMap<String, u64>,
}

/// That of the namespace that this thread is in.
pub(super) fn now() -> Option<Conntrack> {
    let number = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"));
        text.ok()?.trim().parse().ok()
    };
    let text = fs::read_to_string("/proc/thread-self/net/stat/nf_conntrack").unwrap_or_default();
    Some(Conntrack { count: number("count")?, max: number("max")?, counts: counts(&text) })
}

/// A line of names, and one of hexadecimal numbers for each processor.
pub(super) fn counts(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_whitespace()) {
            let value = u64::from_str_radix(value, 16).unwrap_or(0);
            let count = counts.entry((*name).to_owned()).or_default();
            *count = count.saturating_add(value);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_processors_are_added() {
        let text = "entries  clashres found drop\n0000000a  00000000 00000001 0000000f\n\
                    0000000a  00000000 00000002 00000010\n";
        let counts = counts(text);
        assert_eq!((counts.get("drop"), counts.get("found")), (Some(&31), Some(&3)));
    }
}
