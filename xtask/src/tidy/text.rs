//! Rules for every file as text: characters, line length, markers, paths of one machine, size of
//! blobs.

use super::file::File;

const LINE_CHARACTERS_MAX: usize = 100;
const BLOB_SIZE_BYTES_MAX: u64 = 256 * 1024;
/// The script of the page is one file, of which a third goes out: it is compressed.
const SCRIPT: &str = "web/dist/app.js";
const SCRIPT_SIZE_BYTES_MAX: u64 = 512 * 1024;

/// Folders that exist on one machine only. Split, so that this file does not break its own rule.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/te", "am"),
    concat!("/Us", "ers/"),
];

/// Findings for all files.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<String> {
    let most = if file.path == SCRIPT { SCRIPT_SIZE_BYTES_MAX } else { BLOB_SIZE_BYTES_MAX };
    if file.size_bytes > most {
        let (path, size) = (&file.path, file.size_bytes);
        return vec![format!("{path}: {size} bytes; at most {most}")];
    }
    let Some(text) = file.text.as_deref() else { return Vec::new() };
    // Plots are drawn by the program; a test draws them again. The page is built from its source.
    let is_generated = file.path.ends_with("Cargo.lock")
        || file.is("svg")
        || file.path.starts_with("web/dist/")
        || file.path == "web/package-lock.json";
    // A text in JSON cannot be broken.
    let is_prose = file.is("md") || file.is("json") || file.path == "LICENSE";
    let is_data = file.path.contains("/tests/data/") || file.path.starts_with("fuzz/seeds/");
    if is_generated || is_data {
        return Vec::new();
    }
    let lines = (1..).zip(text.lines());
    let findings = lines.flat_map(|(number, line)| {
        let broken = line_rules(line, is_prose);
        broken.into_iter().map(move |rule| format!("{}:{number}: {rule}", file.path))
    });
    let findings: Vec<String> = findings.collect();
    let examples = file.is("rs").then(|| doc_examples(text)).into_iter().flatten();
    let examples = examples.map(|number| {
        format!("{}:{number}: an example that nothing runs: ```text, and a test", file.path)
    });
    findings.into_iter().chain(examples).collect()
}

/// Lines at which a comment begins an example that rustdoc would run. Tests do not run those: each
/// crate would cost a start of rustdoc.
fn doc_examples(text: &str) -> Vec<usize> {
    let comments = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.trim_start();
        Some((number, line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim()))
    });
    let fences = comments.filter(|(_, line)| line.starts_with("```"));
    // Every other one ends what the one before has begun.
    let begins = fences.step_by(2);
    begins.filter(|(_, line)| *line != "```text").map(|(number, _)| number).collect()
}

fn line_rules(line: &str, is_prose: bool) -> Vec<String> {
    let mut broken = Vec::new();
    if let Some(character) = line.chars().find(|character| !character.is_ascii()) {
        broken.push(format!("{:?} is not ASCII", character.escape_unicode().to_string()));
    }
    broken.extend(machine_path(line));
    // Prose may be wide (tables) and may speak about markers.
    if !is_prose {
        let width = line.chars().count();
        if width > LINE_CHARACTERS_MAX {
            broken.push(format!("{width} characters; at most {LINE_CHARACTERS_MAX}"));
        }
        broken.extend(marker(line));
    }
    broken
}

fn machine_path(line: &str) -> Option<String> {
    let path = MACHINE_PATHS.iter().find(|path| line.contains(*path))?;
    Some(format!("{path} exists on one machine only"))
}

/// Markers of unfinished work: one kind never, the other with the number of an issue.
fn marker(line: &str) -> Option<String> {
    let (never, numbered) = (concat!("FIX", "ME"), concat!("TO", "DO"));
    if line.contains(never) {
        return Some(format!("{never}: repair it, or open an issue"));
    }
    let (_, after) = line.split_once(numbered)?;
    let number = after.trim_start_matches(['(', ' ']).strip_prefix('#');
    let has_number = number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    (!has_number).then(|| format!("{numbered} without the number of an issue, as in (#12)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_findings(text: &str) -> usize {
        findings("crates/packets/wire/src/lib.rs", text)
    }

    fn findings(path: &str, text: &str) -> usize {
        let size_bytes = u64::try_from(text.len()).unwrap();
        let file = File { path: path.to_owned(), size_bytes, text: Some(text.to_owned()) };
        check(&[file]).len()
    }

    #[test]
    fn a_line_has_100_characters_in_code_and_any_number_in_prose() {
        assert_eq!(code_findings(&"x".repeat(100)), 0);
        assert_eq!(code_findings(&"x".repeat(101)), 1);
        assert_eq!(findings("README.md", &"x".repeat(101)), 0);
    }

    #[test]
    fn an_example_in_a_comment_is_text() {
        let comment = |kind: &str| format!("/// A\n/// {kind}\n/// b\n/// ```\nfn b() {{}}\n");
        assert_eq!(code_findings(&comment("```text").repeat(2)), 0);
        for kind in ["```", "```rust", "```no_run"] {
            assert_eq!(code_findings(&format!("{}{}", comment("```text"), comment(kind))), 1);
        }
        assert_eq!(findings("README.md", &comment("```")), 0);
    }

    #[test]
    fn every_text_is_ascii() {
        assert_eq!(findings("README.md", "a \u{2014} b"), 1);
        assert_eq!(findings("README.md", "a - b"), 0);
    }

    #[test]
    fn a_marker_needs_the_number_of_an_issue() {
        assert_eq!(code_findings(concat!("// FIX", "ME: (#1)")), 1);
        assert_eq!(code_findings(concat!("// TO", "DO: later")), 1);
        assert_eq!(code_findings(concat!("// TO", "DO(#12): later")), 0);
        assert_eq!(code_findings(concat!("// TO", "DO #12: later")), 0);
    }

    #[test]
    fn a_path_of_one_machine_is_refused_everywhere() {
        assert_eq!(findings("README.md", concat!("see /wo", "rk/main")), 1);
        assert_eq!(code_findings(concat!("// see /ro", "ot/x")), 1);
    }

    #[test]
    fn a_blob_over_256_kib_is_refused_captures_included() {
        let file = |size_bytes| File { path: "a.pcapng".to_owned(), size_bytes, text: None };
        assert_eq!(check(&[file(BLOB_SIZE_BYTES_MAX)]).len(), 0);
        assert_eq!(check(&[file(BLOB_SIZE_BYTES_MAX + 1)]).len(), 1);
    }
}
