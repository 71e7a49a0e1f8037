//! docs/query.md says what the parser does.

use std::fmt::Write;

use query::{FIELDS, Query};

use crate::sessions::NOW;

const DOCUMENT: &str = include_str!("../../../../../docs/query.md");

/// The field table as it has to stand in the document.
fn table() -> String {
    let mut table = "| field | also | kind | meaning |\n|---|---|---|---|\n".to_owned();
    for field in FIELDS.iter() {
        let aliases: Vec<String> = field.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let (name, aliases, kind) = (field.name, aliases.join(" "), field.kind);
        writeln!(table, "| `{name}` | {aliases} | {kind} | {} |", field.meaning).unwrap();
    }
    table
}

#[test]
fn the_table_of_fields_is_that_of_the_parser() {
    let expected = table();
    assert!(DOCUMENT.contains(&expected), "docs/query.md needs this table:\n{expected}");
}

#[test]
fn every_example_parses() {
    let blocks = DOCUMENT.split("```").skip(1).step_by(2);
    let mut count = 0;
    for block in blocks {
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let query = line.split(" # ").next().unwrap();
            Query::parse(query, NOW).unwrap_or_else(|error| panic!("{}", error.render(query)));
            count += 1;
        }
    }
    assert!(count > 20, "only {count} examples found");
}
