//! Rules for documents: links resolve, the changelog has its form, every library has its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::file::File;
use super::rows::Package;

const CHANGELOG: &str = "CHANGELOG.md";
const CHANGELOG_GROUPS: [&str; 4] = ["Lossless", "Features", "Fixes", "Internals"];
const PROSE_CHARACTERS_MAX: usize = 120;
const DECISIONS: &str = "docs/decisions.md";

/// Findings for the documents among the files.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    let markdown = files.iter().filter(|file| file.is("md"));
    let texts: BTreeMap<&str, &str> =
        markdown.filter_map(|file| Some((&*file.path, file.text.as_deref()?))).collect();
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = Vec::new();
    for (path, text) in &texts {
        findings.extend(links(path, text, &paths, &texts));
        findings.extend(wide(path, text));
    }
    findings.extend(texts.get(CHANGELOG).into_iter().flat_map(|text| changelog(text)));
    findings
}

/// Every library that a crate uses has a line in the table of decisions, every line its library,
/// and the workspace names none that no crate uses.
pub(crate) fn decisions(files: &[File], packages: &[Package]) -> Vec<String> {
    let text_of = |path: &str| files.iter().find(|file| file.path == path)?.text.as_deref();
    let used: BTreeSet<&str> = packages.iter().flat_map(Package::libraries).collect();
    let mut findings = reasons(text_of(DECISIONS).unwrap_or_default(), &used);
    findings.extend(unused(text_of("Cargo.toml").unwrap_or_default(), &used));
    findings
}

fn reasons(text: &str, used: &BTreeSet<&str>) -> Vec<String> {
    let table = section(text, "## Libraries", "## ");
    let given: BTreeSet<&str> = table.flat_map(|line| code_spans(first_cell(line))).collect();
    let missing = used.difference(&given).map(|name| format!("{DECISIONS}: no reason for {name}"));
    let stale = given.difference(used).map(|name| format!("{DECISIONS}: no crate uses {name}"));
    missing.chain(stale).collect()
}

/// Names in the workspace's table of dependencies that no crate asks for; our own crates apart.
fn unused(manifest: &str, used: &BTreeSet<&str>) -> Vec<String> {
    let table = section(manifest, "[workspace.dependencies]", "[");
    let libraries = table.filter(|line| !line.contains("path = "));
    let names = libraries.filter_map(|line| Some(line.split_once(" = ")?.0));
    let unused = names.filter(|name| !used.contains(name));
    unused.map(|name| format!("Cargo.toml: no crate uses {name}")).collect()
}

/// The lines below a heading, up to the next that begins so.
fn section<'t>(text: &'t str, heading: &str, next: &str) -> impl Iterator<Item = &'t str> {
    let below = text.lines().skip_while(move |line| *line != heading).skip(1);
    below.take_while(move |line| !line.starts_with(next))
}

/// Lines of prose that are wider than a window. A row of a table cannot be broken.
fn wide(path: &str, text: &str) -> Vec<String> {
    let lines = prose(text).filter(|(_, line)| !line.trim_start().starts_with('|'));
    let widths = lines.map(|(number, line)| (number, line.chars().count()));
    let wide = widths.filter(|(_, width)| *width > PROSE_CHARACTERS_MAX);
    wide.map(|(number, width)| {
        format!("{path}:{number}: {width} characters; at most {PROSE_CHARACTERS_MAX}")
    })
    .collect()
}

fn first_cell(line: &str) -> &str {
    line.strip_prefix('|').and_then(|row| row.split('|').next()).unwrap_or("")
}

/// What stands between back quotes.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn links(
    path: &str,
    text: &str,
    paths: &BTreeSet<&str>,
    texts: &BTreeMap<&str, &str>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(line).filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
            let is_folder = || paths.iter().any(|known| known.starts_with(&format!("{file}/")));
            if !paths.contains(file.as_str()) && !is_folder() {
                findings.push(format!("{path}:{number}: {target} does not exist"));
            } else if !anchor.is_empty()
                && !texts.get(&*file).is_some_and(|t| has_anchor(t, anchor))
            {
                findings.push(format!("{path}:{number}: {target} names no heading"));
            }
        }
    }
    findings
}

/// Numbered lines outside fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The targets of the links of one line: `](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// A relative path as seen from the folder of a file.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn has_anchor(text: &str, anchor: &str) -> bool {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| slug(line.trim_start_matches('#').trim())).any(|slug| slug == anchor)
}

/// The anchor that forges make of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Releases under `## `, groups in their order under `### `, entries as `- `.
fn changelog(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut group = None;
    for (number, line) in (1..).zip(text.lines()) {
        let mut refuse = |what: &str| findings.push(format!("{CHANGELOG}:{number}: {what}"));
        if let Some(release) = line.strip_prefix("## ") {
            group = None;
            if !is_release(release) {
                refuse("a release is `Unreleased` or `1.2.3 - 2000-12-31`");
            }
        } else if let Some(name) = line.strip_prefix("### ") {
            let place = CHANGELOG_GROUPS.iter().position(|known| *known == name);
            if place.is_none() || place <= group {
                refuse("groups are Lossless, Features, Fixes, Internals, in this order");
            }
            group = place;
        } else if line.starts_with("- ") && group.is_none() {
            refuse("an entry belongs to a group");
        }
    }
    findings
}

fn is_release(heading: &str) -> bool {
    let has_form = |text: &str, separator: char, parts: usize| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        text.split(separator).count() == parts && text.split(separator).all(is_number)
    };
    let release = heading.split_once(" - ");
    heading == "Unreleased"
        || release
            .is_some_and(|(version, date)| has_form(version, '.', 3) && has_form(date, '-', 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_links(target: &str) -> usize {
        let text = format!("# Read Me\n[a]({target})\n```\n[b](in-code.md)\n```\n");
        let paths = BTreeSet::from(["docs/a.md", "docs/b.md", "crates/packets/wire/src/lib.rs"]);
        let texts =
            BTreeMap::from([("docs/a.md", text.as_str()), ("docs/b.md", "## The ring, drawn\n")]);
        links("docs/a.md", &text, &paths, &texts).len()
    }

    #[test]
    fn a_line_of_prose_is_no_wider_than_a_window() {
        let wide = "w".repeat(PROSE_CHARACTERS_MAX + 1);
        assert_eq!(super::wide("a.md", &format!("short\n{wide}\n")).len(), 1);
        let kept = format!("{}\n| {wide} |\n```\n{wide}\n```\n", "w".repeat(PROSE_CHARACTERS_MAX));
        assert!(super::wide("a.md", &kept).is_empty());
    }

    #[test]
    fn a_link_leads_to_a_file_a_folder_or_a_heading() {
        for target in [
            "b.md",
            "../crates/packets/wire/src/lib.rs",
            "../crates/packets/wire/",
            "b.md#the-ring-drawn",
            "#read-me",
            "https://example.com/x",
        ] {
            assert_eq!(broken_links(target), 0, "{target}");
        }
        for target in ["c.md", "../b.md", "b.md#the-rings", "#nothing", "../crates/storage/format/"]
        {
            assert_eq!(broken_links(target), 1, "{target}");
        }
    }

    #[test]
    fn a_library_needs_a_reason_and_a_reason_its_library() {
        let text = "# Decisions\n## Libraries\n| library | reason |\n|---|---|\n| `a`, `b` | c |\n";
        assert!(reasons(text, &BTreeSet::from(["a", "b"])).is_empty());
        assert_eq!(reasons(text, &BTreeSet::from(["a", "b", "c"])).len(), 1);
        assert_eq!(reasons(text, &BTreeSet::from(["a"])).len(), 1);
    }

    #[test]
    fn a_library_of_the_workspace_that_no_crate_uses_is_found() {
        let text = "[workspace.dependencies]\nwire = { path = \"crates/a/wire\" }\na = \"1\"\n\
                    b = { version = \"1\", features = [\n    \"c\",\n] }\n[workspace.x]\nd = 1\n";
        assert!(unused(text, &BTreeSet::from(["a", "b"])).is_empty());
        assert_eq!(unused(text, &BTreeSet::from(["a"])), ["Cargo.toml: no crate uses b"]);
    }

    #[test]
    fn the_changelog_has_its_form() {
        let next = "# Changelog\n## Unreleased\n### Features\n- a\n";
        let good = format!("{next}## 0.1.0 - 2026-01-31\n### Fixes\n- b\n");
        assert!(changelog(&good).is_empty());
        for bad in [
            "## 0.1.0\n### Fixes\n- a\n",
            "## Unreleased\n- a\n",
            "## Unreleased\n### Changes\n- a\n",
            "## Unreleased\n### Fixes\n- a\n### Features\n- b\n",
        ] {
            assert!(!changelog(bad).is_empty(), "{bad}");
        }
    }
}
