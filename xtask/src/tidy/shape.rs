//! The shape of the code: no circle of files within a crate, few files used by one, crates that one
//! reader can know, short functions with few parameters.
//!
//! Code for tests is not counted. A file uses another one when it names an item that the other
//! declares, by an import or by a path; re-exports are followed to the declaration, and are no use
//! themselves. Methods of a type are called without a path, so an `impl` in another file than its
//! type goes unseen.

mod circles;
mod functions;
mod modules;
mod parse;
mod rule;
mod survey;
mod uses;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::file::File;
use rule::Figure;
use survey::Survey;

/// What the check says: findings, and one line with the figures of all code.
pub(super) struct Shape {
    pub(super) findings: Vec<String>,
    pub(super) summary: String,
}

/// Measures all crates and compares with the limits.
pub(super) fn check(files: &[File]) -> Shape {
    let survey = Survey::of(&texts(files));
    let findings = over_limits(&survey.figures());
    Shape { findings, summary: survey.summary() }
}

/// Each use between files of one circle, one a line: without some of them the circle is open.
pub(super) fn edges_of_circles(files: &[File]) -> Vec<String> {
    Survey::of(&texts(files)).edges().map(str::to_owned).collect()
}

fn texts(files: &[File]) -> BTreeMap<&str, &str> {
    files.iter().filter_map(|file| Some((&*file.path, file.text.as_deref()?))).collect()
}

/// Figures over their limit.
fn over_limits(figures: &[Figure]) -> Vec<String> {
    let over = figures.iter().filter(|figure| figure.value > figure.rule.limit());
    let finding = |Figure { rule, place, value, detail }: &Figure| {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        format!("{place}: {value} {}; at most {}{detail}", rule.unit(), rule.limit())
    };
    over.map(finding).collect()
}
