//! Processes and those that they started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A process, its children, theirs, and so on; empty when it has ended.
pub fn family(process: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut is_there = false;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // What ends meanwhile is not there.
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((parent, is_alive)) = parent(&text) else { continue };
        is_there |= number == process && is_alive;
        children.entry(parent).or_default().push(number);
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

/// The parent in `/proc/PID/stat`, behind the name, which may hold anything; and whether it runs.
fn parent(stat: &str) -> Option<(u32, bool)> {
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?;
    Some((rest.next()?.parse().ok()?, !matches!(state, "Z" | "X")))
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

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent("7 (a) S 3) R 5 7 7"), Some((5, true)));
        assert_eq!(parent("7 (a) Z 5 7 7"), Some((5, false)));
        assert_eq!(parent("7 (a"), None);
    }
}
