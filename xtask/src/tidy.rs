//! Rules that the compiler cannot see, over every file that git knows or would add.
//!
//! Each rule is a function from text to findings, one line each, with a test that shows it fails on
//! a bad example. Checks write and repair nothing. A rule has no list of exceptions:
//! what breaks it is changed. Only the limits of the shape have a table of what is over them, whose
//! figures fall.

mod boundary;
mod documents;
mod file;
mod fuzz;
mod layouts;
mod rows;
mod shape;
mod source;
mod structure;
mod text;

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{mutants, process};
use file::File;
pub(crate) use rows::PARTS;
use source::Source;

/// Checks every rule, prints the findings, and returns whether there were none.
pub(crate) fn run() -> Result<bool> {
    let files = files()?;
    let mut findings = text::check(&files);
    findings.extend(documents::check(&files));
    findings.extend(layouts::check(&files));
    findings.extend(fuzz::check(&files));
    let text_of = |path: &str| files.iter().find(|file| file.path == path)?.text.as_deref();
    findings.extend(mutants::check(files.iter().map(|file| file.path.as_str()), &text_of));
    let packages = packages()?;
    findings.extend(rows::check(&packages));
    findings.extend(structure::check(&files, &|name| part_of(&packages, name)));
    findings.extend(documents::decisions(&files, &packages));
    findings.extend(code(&files));
    let shape = shape::check(&files);
    findings.extend(shape.findings);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", shape.summary);
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
}

/// Draws the picture of the crates anew.
pub(crate) fn run_draw() -> Result<bool> {
    let packages = packages()?;
    let picture = structure::draw(&|name| part_of(&packages, name));
    std::fs::write(process::root().join(structure::PATH), picture)?;
    Ok(true)
}

fn part_of(packages: &[rows::Package], name: &str) -> Option<&'static str> {
    packages.iter().find(|package| package.name() == name)?.part()
}

/// Prints every use between files of one circle, and returns whether there was none.
pub(crate) fn run_circles() -> Result<bool> {
    let edges = shape::edges_of_circles(&files()?);
    for edge in &edges {
        println!("{edge}");
    }
    Ok(edges.is_empty())
}

fn files() -> Result<Vec<File>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let list = process::text(&mut process::command("git", &list))?;
    let paths: BTreeSet<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    paths.into_iter().filter_map(|path| File::read(path).transpose()).collect()
}

fn packages() -> Result<Vec<rows::Package>> {
    let mut packages = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        if process::root().join(manifest).exists() {
            let arguments =
                ["metadata", "--no-deps", "--format-version=1", "--manifest-path", manifest];
            packages.extend(rows::packages(&process::text(&mut process::cargo(&arguments))?)?);
        }
    }
    Ok(packages)
}

fn code(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is("rs"));
    let sources: Vec<Source> =
        rust.filter_map(|file| Some(Source::new(&file.path, file.text.as_deref()?))).collect();
    let tests: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
    let production = sources.iter().filter(|source| !source.is_test(&tests));
    production
        .flat_map(|source| boundary::check(source).into_iter().chain(source.length()))
        .collect()
}
