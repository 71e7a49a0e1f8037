//! The shape of the code: no circle of files within a crate, few files used by one, crates that one
//! reader can know, short functions with few parameters.
//!
//! Code for tests is not counted. What is over a limit stands in [`ratchet`] with its figure, which
//! may only fall. A file uses another one when it names an item that the other declares, by an
//! import or by a path; re-exports are followed to the declaration, and are no use themselves.
//! Methods of a type are called without a path, so an `impl` in another file than its type goes
//! unseen.

mod circles;
mod functions;
mod modules;
mod parse;
mod ratchet;
mod rule;
mod survey;
mod uses;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::file::File;
use ratchet::Entry;
use rule::Figure;
use survey::Survey;

/// What the check says: findings, and one line with the figures of all code.
pub(super) struct Shape {
    pub(super) findings: Vec<String>,
    pub(super) summary: String,
}

/// Measures all crates and compares with the limits and the ratchet.
pub(super) fn check(files: &[File]) -> Shape {
    let survey = Survey::of(&texts(files));
    let findings = compare(&survey.figures(), &ratchet::ENTRIES);
    Shape { findings, summary: survey.summary() }
}

/// Each use between files of one circle, one a line: without some of them the circle is open.
pub(super) fn edges_of_circles(files: &[File]) -> Vec<String> {
    Survey::of(&texts(files)).edges().map(str::to_owned).collect()
}

fn texts(files: &[File]) -> BTreeMap<&str, &str> {
    files.iter().filter_map(|file| Some((&*file.path, file.text.as_deref()?))).collect()
}

/// Figures over their limit that have no entry or are above it, and entries that are too high or
/// not needed.
fn compare(figures: &[Figure], entries: &[Entry]) -> Vec<String> {
    let is_of =
        |figure: &Figure, entry: &Entry| figure.rule == entry.rule && figure.place == entry.place;
    let over = figures.iter().filter_map(|figure| {
        let Figure { rule, place, value, detail } = figure;
        let entry = entries.iter().find(|entry| is_of(figure, entry));
        let most = entry.map_or(rule.limit(), |entry| entry.figure.max(rule.limit()));
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let unit = rule.unit();
        (*value > most).then(|| format!("{place}: {value} {unit}; at most {most}{detail}"))
    });
    let stale = entries.iter().filter_map(|entry| {
        let figures = figures.iter().filter(|figure| is_of(figure, entry));
        let value = figures.map(|figure| figure.value).max().unwrap_or(0);
        let Entry { rule, place, figure } = entry;
        let unit = rule.unit();
        if value <= rule.limit() {
            return Some(format!("{place}: {value} {unit}: take its entry out of ratchet.rs"));
        }
        (value < *figure)
            .then(|| format!("{place}: {value} {unit}: lower its entry in ratchet.rs to that"))
    });
    over.chain(stale).collect()
}
