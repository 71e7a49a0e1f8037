//! Circles in a graph of uses: files from which a way leads back to them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::uses::Uses;

/// The circles, each as the set of all files that lead to each other, the largest first.
pub(super) fn circles(uses: &Uses) -> Vec<BTreeSet<usize>> {
    let reach: BTreeMap<usize, BTreeSet<usize>> =
        uses.keys().map(|file| (*file, reachable(uses, *file))).collect();
    let leads = |from: &usize, to: &usize| reach.get(from).is_some_and(|all| all.contains(to));
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for file in uses.keys().filter(|file| leads(file, file)) {
        if !circles.iter().any(|circle| circle.contains(file)) {
            let members = uses.keys().filter(|other| leads(file, other) && leads(other, file));
            circles.push(members.copied().collect());
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The shortest way round in a circle: its files in order, without the first one again.
pub(super) fn shortest(uses: &Uses, circle: &BTreeSet<usize>) -> Vec<usize> {
    let rounds = circle.iter().filter_map(|file| round(uses, *file));
    rounds.min_by_key(Vec::len).expect("a circle has a way round")
}

fn next(uses: &Uses, file: usize) -> impl Iterator<Item = usize> {
    uses.get(&file).into_iter().flat_map(|to| to.keys().copied())
}

/// Files that a way leads to from this one; itself only where a way leads back.
fn reachable(uses: &Uses, file: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        open.extend(next(uses, file).filter(|to| seen.insert(*to)));
    }
    seen
}

fn round(uses: &Uses, start: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for to in next(uses, file) {
            if to == start {
                let mut way = vec![file];
                while let Some(file) = way.last().and_then(|last| before.get(last)) {
                    way.push(*file);
                }
                way.reverse();
                return Some(way);
            }
            if let Entry::Vacant(unseen) = before.entry(to) {
                unseen.insert(file);
                open.push_back(to);
            }
        }
    }
    None
}
