//! Rules that the compiler cannot see, over every file that git knows or would add.
//!
//! Each rule is a function from text to findings, one line each, with a test that shows it fails on
//! a bad example. Nothing is written and nothing is repaired. A rule has no list of exceptions:
//! what breaks it is changed.

mod boundary;
mod documents;
mod fuzz;
mod layouts;
mod rows;
mod source;
mod text;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use crate::{mutants, process};
pub(crate) use rows::PARTS;
use source::Source;

/// One file of the repository: its path from the root, its size, and its text where it is text.
pub(crate) struct File {
    path: String,
    size_bytes: u64,
    text: Option<String>,
}

impl File {
    fn read(path: &str) -> Result<Option<File>> {
        let full = process::root().join(path);
        // Deleted but not yet committed, or a link: git lists both.
        if !fs::symlink_metadata(&full).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        let size_bytes = u64::try_from(bytes.len()).expect("a length fits u64");
        Ok(Some(File { path: path.to_owned(), size_bytes, text: String::from_utf8(bytes).ok() }))
    }

    fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }
}

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
    findings.extend(documents::decisions(&files, &packages));
    findings.extend(code(&files));
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
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
