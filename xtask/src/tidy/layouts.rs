//! The byte layouts drawn in docs/format.md are those of the code.
//!
//! A section that draws a layout names its file in a line "Constants: `path`". The table below that
//! line has the rows ``| offset | size | `NAME` | ...``. The file has the offsets in a module `at`,
//! as `const NAME: usize = 8;`. Both must have the same names with the same offsets, and no row may
//! reach into the next.

use std::collections::BTreeMap;

use super::file::File;

const DOCUMENT: &str = "docs/format.md";

#[derive(Debug)]
struct Row<'t> {
    line: usize,
    offset: usize,
    size: usize,
    name: &'t str,
}

/// Findings for every layout that the document draws; none while there is no document.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    let text_of = |path: &str| files.iter().find(|file| file.path == path)?.text.as_deref();
    let mut findings = Vec::new();
    for (path, rows) in layouts(text_of(DOCUMENT).unwrap_or_default()) {
        match text_of(path) {
            Some(code) => findings.extend(compare(path, &rows, &constants(code))),
            None => findings.push(format!("{DOCUMENT}: {path} does not exist")),
        }
    }
    findings
}

/// The rows below each "Constants:" line, up to the next such line or heading.
fn layouts(document: &str) -> Vec<(&str, Vec<Row<'_>>)> {
    let mut layouts: Vec<(&str, Vec<Row>)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(document.lines()) {
        if let Some(path) = line.strip_prefix("Constants: ").and_then(|rest| rest.split('`').nth(1))
        {
            layouts.push((path, Vec::new()));
            is_open = true;
        }
        is_open &= !line.starts_with('#');
        if let (true, Some((_, rows)), Some(row)) = (is_open, layouts.last_mut(), row(number, line))
        {
            rows.push(row);
        }
    }
    layouts
}

/// A row that names a constant; the heading of the table and rows of prose do not.
fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let mut cells = text.strip_prefix('|')?.split('|').map(str::trim);
    let (offset, size) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    let name = cells.next()?.strip_prefix('`')?.split('`').next()?;
    Some(Row { line, offset, size, name })
}

/// The offsets in the module `at`, by name. One that others are defined by is a base, not a field.
fn constants(code: &str) -> BTreeMap<&str, usize> {
    let module = code.split_once("mod at {").map_or("", |(_, rest)| rest);
    let module = module.split_once("\n}").map_or(module, |(inside, _)| inside);
    let definitions = module.lines().filter_map(|line| {
        let (_, definition) = line.split_once("const ")?;
        let (name, value) = definition.split_once(": usize = ")?;
        Some((name, value.split(';').next()?))
    });
    let definitions: BTreeMap<&str, &str> = definitions.collect();
    let is_base = |name: &str| definitions.values().any(|value| *value == name);
    let fields = definitions.iter().filter(|(name, _)| !is_base(name));
    let value = |text: &str| definitions.get(text).unwrap_or(&text).replace('_', "").parse().ok();
    fields.filter_map(|(name, text)| Some((*name, value(text)?))).collect()
}

fn compare(path: &str, rows: &[Row], constants: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut findings = Vec::new();
    for Row { line, offset, name, .. } in rows {
        match constants.get(name) {
            Some(found) if found == offset => {}
            Some(found) => findings.push(format!(
                "{DOCUMENT}:{line}: {name} is drawn at {offset}; {path} has it at {found}"
            )),
            None => findings.push(format!("{DOCUMENT}:{line}: {path} has no {name}")),
        }
    }
    for (upper, lower) in rows.iter().zip(rows.iter().skip(1)) {
        if upper.offset + upper.size > lower.offset {
            let (line, upper, lower) = (lower.line, upper.name, lower.name);
            findings.push(format!("{DOCUMENT}:{line}: {upper} reaches into {lower}"));
        }
    }
    let drawn = |name: &str| rows.iter().any(|row| row.name == name);
    let missing = constants.keys().filter(|name| !drawn(name));
    findings.extend(missing.map(|name| format!("{DOCUMENT}: {name} of {path} is not drawn")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\
mod at {
    const BASE: usize = 0;
    pub(super) const MAGIC: usize = BASE;
    pub(super) const EPOCH: usize = 8; // why
}
const OTHER: usize = 7;
";

    fn findings(rows: &str) -> Vec<String> {
        let document = format!(
            "# Head\nConstants: `head.rs`\n\n| offset | size | field |\n|--|--|--|\n{rows}\n"
        );
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            size_bytes: 0,
            text: Some(text.to_owned()),
        };
        check(&[file(DOCUMENT, &document), file("head.rs", CODE)])
    }

    #[test]
    fn the_drawing_and_the_constants_agree_both_ways() {
        assert!(findings("| 0 | 8 | `MAGIC` word |\n| 8 | 4 | `EPOCH` |").is_empty());
        let other_offset = findings("| 0 | 8 | `MAGIC` |\n| 12 | 4 | `EPOCH` |");
        assert_eq!(other_offset, ["docs/format.md:7: EPOCH is drawn at 12; head.rs has it at 8"]);
        let missing = findings("| 0 | 8 | `MAGIC` |");
        assert_eq!(missing, ["docs/format.md: EPOCH of head.rs is not drawn"]);
        assert_eq!(
            findings("| 0 | 8 | `MAGIC` |\n| 8 | 4 | `EPOCH` |\n| 12 | 4 | `LAP` |").len(),
            1
        );
    }

    #[test]
    fn a_field_that_reaches_into_the_next_is_found() {
        let overlap = findings("| 0 | 9 | `MAGIC` |\n| 8 | 4 | `EPOCH` |");
        assert_eq!(overlap, ["docs/format.md:7: MAGIC reaches into EPOCH"]);
    }

    #[test]
    fn a_layout_of_a_missing_file_is_found() {
        let text = "Constants: `gone.rs`\n".to_owned();
        let file = File { path: DOCUMENT.to_owned(), size_bytes: 0, text: Some(text) };
        assert_eq!(check(&[file]), ["docs/format.md: gone.rs does not exist"]);
    }
}
