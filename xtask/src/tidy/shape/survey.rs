//! All crates, measured.

use std::collections::{BTreeMap, BTreeSet};

use super::circles;
use super::functions::{self, Function};
use super::modules::Modules;
use super::rule::{Figure, Rule};
use super::uses::{self, Uses};
use crate::tidy::source::Source;

/// Where the figures of all functions stand.
const EVERYWHERE: &str = "all code";

pub(super) struct Survey {
    crates: Vec<Measured>,
    functions: Vec<Function>,
}

struct Measured {
    folder: String,
    lines: usize,
    in_circles: usize,
    /// The shortest way round of each circle.
    rounds: Vec<String>,
    /// Every use from a file to another one of its circle.
    edges: Vec<String>,
    /// Files, each with the number of others that it uses items of.
    used: Vec<(String, usize)>,
}

impl Survey {
    /// Measures the crates among files with their texts, by path: those of `crates`, and `xtask`.
    pub(super) fn of(texts: &BTreeMap<&str, &str>) -> Survey {
        let folders = texts.keys().filter_map(|path| path.strip_suffix("/Cargo.toml"));
        let is_checked = |folder: &&str| folder.starts_with("crates/") || *folder == "xtask";
        let mut survey = Survey { crates: Vec::new(), functions: Vec::new() };
        for folder in folders.filter(is_checked) {
            let modules = Modules::read(folder, texts);
            for file in &modules.files {
                let text = texts.get(&*file.path).copied().unwrap_or_default();
                survey.functions.extend(functions::functions(&file.path, &file.syntax, text));
            }
            survey.crates.push(measure(folder, &modules, texts));
        }
        survey
    }

    /// Each use within a circle, one a line.
    pub(super) fn edges(&self) -> impl Iterator<Item = &str> {
        self.crates.iter().flat_map(|measured| &measured.edges).map(String::as_str)
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let plain = |rule, place: &str, value| Figure {
            rule,
            place: place.to_owned(),
            value,
            detail: String::new(),
        };
        let mut figures = Vec::new();
        for measured in &self.crates {
            figures.push(Figure {
                detail: measured.rounds.join("; "),
                ..plain(Rule::FilesInCircles, &measured.folder, measured.in_circles)
            });
            figures.push(plain(Rule::CrateLines, &measured.folder, measured.lines));
            let used = measured.used.iter();
            figures.extend(used.map(|(path, value)| plain(Rule::FilesUsed, path, *value)));
        }
        let functions = self.functions.iter();
        figures.extend(
            functions.map(|function| plain(Rule::FunctionLines, &function.place, function.lines)),
        );
        let of_all = self.of_functions();
        figures.push(plain(Rule::FunctionLinesP50, EVERYWHERE, of_all.lines_p50));
        figures.push(plain(Rule::FunctionLinesP90, EVERYWHERE, of_all.lines_p90));
        figures.push(plain(Rule::ParametersP90, EVERYWHERE, of_all.parameters_p90));
        figures
    }

    /// One line with the figures of all code.
    pub(super) fn summary(&self) -> String {
        let of_all = self.of_functions();
        let sum = |figure: fn(&Measured) -> usize| self.crates.iter().map(figure).sum::<usize>();
        let lines_max = self.crates.iter().map(|measured| measured.lines).max().unwrap_or(0);
        let used = self.crates.iter().flat_map(|measured| &measured.used);
        format!(
            "shape: {} crates, {} lines without tests, the largest {lines_max}; {} functions, \
             lines p50 {}, p90 {}, max {}, parameters p90 {}; {} files in circles; a file uses at \
             most {} others",
            self.crates.len(),
            sum(|measured| measured.lines),
            self.functions.len(),
            of_all.lines_p50,
            of_all.lines_p90,
            of_all.lines_max,
            of_all.parameters_p90,
            sum(|measured| measured.in_circles),
            used.map(|(_, used)| *used).max().unwrap_or(0),
        )
    }

    fn of_functions(&self) -> OfFunctions {
        let lines: Vec<usize> = self.functions.iter().map(|function| function.lines).collect();
        let parameters: Vec<usize> =
            self.functions.iter().map(|function| function.parameters).collect();
        OfFunctions {
            lines_p50: functions::percentile(&lines, 50),
            lines_p90: functions::percentile(&lines, 90),
            lines_max: functions::percentile(&lines, 100),
            parameters_p90: functions::percentile(&parameters, 90),
        }
    }
}

struct OfFunctions {
    lines_p50: usize,
    lines_p90: usize,
    lines_max: usize,
    parameters_p90: usize,
}

fn measure(folder: &str, modules: &Modules, texts: &BTreeMap<&str, &str>) -> Measured {
    let uses = uses::uses(modules);
    let circles = circles::circles(&uses);
    let path = |file: usize| modules.files.get(file).map_or("", |file| &file.path);
    let edge = |from: usize, to: usize| describe(&uses, [from, to], folder, &path);
    let round = |circle: &BTreeSet<usize>| {
        let way = circles::shortest(&uses, circle);
        let to = way.iter().cycle().skip(1);
        way.iter().zip(to).map(|(from, to)| edge(*from, *to)).collect::<Vec<String>>().join(", ")
    };
    let inner = circles.iter().flat_map(|circle| {
        let from = circle.iter().filter_map(|from| Some((*from, uses.get(from)?)));
        from.flat_map(move |(from, to)| {
            to.keys().filter(|to| circle.contains(to)).map(move |to| (from, *to))
        })
    });
    let lines = |path: &str| Source::new(path, texts.get(path).unwrap_or(&"")).lines();
    Measured {
        folder: folder.to_owned(),
        lines: modules.files.iter().map(|file| lines(&file.path)).sum(),
        in_circles: circles.iter().map(BTreeSet::len).sum(),
        rounds: circles.iter().map(round).collect(),
        edges: inner.map(|(from, to)| format!("{folder}: {}", edge(from, to))).collect(),
        used: uses.iter().map(|(file, used)| (path(*file).to_owned(), used.len())).collect(),
    }
}

/// `writer.rs -> ring.rs (Ring, next)`.
fn describe<'a>(
    uses: &Uses,
    [from, to]: [usize; 2],
    folder: &str,
    path: &dyn Fn(usize) -> &'a str,
) -> String {
    let inside = format!("{folder}/src/");
    let short = |file: usize| path(file).trim_start_matches(&*inside);
    let names = uses.get(&from).and_then(|uses| uses.get(&to)).into_iter().flatten();
    let names = names.map(String::as_str).collect::<Vec<&str>>().join(", ");
    format!("{} -> {} ({names})", short(from), short(to))
}
