//! Processes and those that they started.

use std::collections::{BTreeMap, BTreeSet};

use host::processes::{Stat, processes};

/// A process, its children, theirs, and so on; empty when it has ended.
pub fn family(process: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut is_there = false;
    for number in processes() {
        // What ends meanwhile is not there.
        let Some(stat) = Stat::of(number) else { continue };
        is_there |= number == process && stat.is_alive;
        children.entry(stat.parent).or_default().push(number);
    }
    let mut found = BTreeSet::new();
    let mut next = if is_there { vec![process] } else { Vec::new() };
    while let Some(process) = next.pop() {
        if found.insert(process) {
            next.extend(children.get(&process).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_of_the_family_until_it_ends() {
        let us = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(family(us).is_superset(&BTreeSet::from([us, child.id()])));
        assert_eq!(family(child.id()), BTreeSet::from([child.id()]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(family(child.id()), BTreeSet::new());
    }
}
