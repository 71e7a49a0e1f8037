//! Every fuzz target has inputs, which ordinary tests replay, and a row in a table of its README;
//! every dictionary has a row, too.

use super::file::File;

const TARGETS: &str = "fuzz/fuzz_targets/";
const DICTIONARIES: &str = "fuzz/dictionaries/";
const README: &str = "fuzz/README.md";

/// Findings for all targets.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    let readme = files.iter().find(|file| file.path == README);
    let readme = readme.and_then(|file| file.text.as_deref()).unwrap_or_default();
    let targets = files.iter().filter_map(|file| {
        let name = file.path.strip_prefix(TARGETS)?.strip_suffix(".rs")?;
        Some((&file.path, name))
    });
    let mut findings = Vec::new();
    for (path, name) in targets {
        let seeds = format!("fuzz/seeds/{name}/");
        if !files.iter().any(|file| file.path.starts_with(&seeds)) {
            findings.push(format!("{path}: {seeds} has no inputs"));
        }
        if !rows(readme).any(|row| is_in(row, name)) {
            findings.push(format!("{path}: {README} has no row for it"));
        }
    }
    let dictionaries = files.iter().filter_map(|file| file.path.strip_prefix(DICTIONARIES));
    for name in dictionaries.filter(|name| !rows(readme).any(|row| is_in(row, name))) {
        findings.push(format!("{DICTIONARIES}{name}: {README} does not say which targets use it"));
    }
    findings
}

fn is_in(row: &str, name: &str) -> bool {
    row.contains(&format!("`{name}`"))
}

/// The first cells of the rows of tables.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(paths: &[&str], readme: &str) -> usize {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            size_bytes: 0,
            text: Some(text.to_owned()),
        };
        let mut files: Vec<File> = paths.iter().map(|path| file(path, "")).collect();
        files.push(file(README, readme));
        check(&files).len()
    }

    #[test]
    fn a_target_has_inputs_and_a_row() {
        let target = "fuzz/fuzz_targets/a.rs";
        let row = "| `a`, `b` | reads `c` |";
        assert_eq!(findings(&[target, "fuzz/seeds/a/one"], row), 0);
        assert_eq!(findings(&[target, "fuzz/seeds/ab/one"], row), 1, "inputs of another");
        assert_eq!(findings(&[target, "fuzz/seeds/a/one"], "| b | `a` |"), 1, "not its row");
        assert_eq!(findings(&[target], ""), 2);
    }

    #[test]
    fn a_dictionary_has_a_row() {
        let dictionary = "fuzz/dictionaries/a.dict";
        assert_eq!(findings(&[dictionary], "| `a.dict` | `a` |"), 0);
        assert_eq!(findings(&[dictionary], "| `aa.dict` | `a` |"), 1);
    }
}
