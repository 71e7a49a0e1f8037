//! Facts of a machine as a file, and what differs between two.

use std::collections::BTreeMap;

use diagnose::machine::{Difference, FACTS_VERSION, SavedFacts};
use page::safe::{json_pretty, printable};
use page::text::plural;
use serde::Serialize;

/// Where there is no terminal to fit.
const WIDTH: usize = 100;

/// Facts as a file that [`diagnose::machine::parse_facts`] reads.
pub fn facts_json(facts: &BTreeMap<String, String>) -> String {
    json_pretty(&SavedFacts::of(facts))
}

/// What differs, in words: one line a fact, the reason behind the first of each kind.
pub fn differences(found: &[Difference], width: Option<usize>) -> String {
    let width = width.unwrap_or(WIDTH);
    if found.is_empty() {
        return "no fact differs\n".to_owned();
    }
    let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let mut text = format!("{} differ; there against here\n", plural(count, "fact"));
    let mut reason = None;
    for difference in found {
        if reason != Some(difference.why) {
            reason = Some(difference.why);
            let why = difference.why.unwrap_or("others, of which nothing is known");
            text.push_str(&format_line("", why, width));
        }
        let value = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), printable);
        let (theirs, ours) = (value(&difference.theirs), value(&difference.ours));
        let name = printable(&difference.name);
        let line = format!("{name}: {theirs} | {ours}");
        if line.chars().count() + 2 <= width {
            text.push_str(&format_line("  ", &line, width));
        } else {
            // Long values one below the other, so that they can be compared by eye.
            for line in [format!("{name}:"), format!("    {theirs}"), format!("  | {ours}")] {
                text.push_str(&format_line("  ", &line, width));
            }
        }
    }
    text
}

/// Cut where it does not fit; `--json` has it whole.
fn format_line(head: &str, line: &str, width: usize) -> String {
    let line = format!("{head}{line}");
    if line.chars().count() <= width {
        return line + "\n";
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    kept + "~\n"
}

/// The differences, and the version of the facts.
#[derive(Serialize)]
struct Compared<'a> {
    version: u32,
    differences: &'a [Difference],
}

/// The same as JSON.
pub fn differences_json(found: &[Difference]) -> String {
    json_pretty(&Compared { version: FACTS_VERSION, differences: found })
}

#[cfg(test)]
mod tests {
    use diagnose::machine::{FactsError, parse_facts};

    use super::*;

    fn difference(name: &str, ours: &str) -> Difference {
        Difference {
            name: name.to_owned(),
            theirs: None,
            ours: Some(ours.to_owned()),
            why: Some("costs"),
        }
    }

    #[test]
    fn facts_come_back_as_they_were_saved() {
        let facts = BTreeMap::from([("a.b".to_owned(), "1 [2]".to_owned())]);
        let text = "{\n  \"version\": 1,\n  \"facts\": {\n    \"a.b\": \"1 [2]\"\n  }\n}\n";
        assert_eq!(facts_json(&facts), text);
        assert_eq!(parse_facts(text).unwrap(), facts);
        assert!(matches!(parse_facts("{}"), Err(FactsError::Other(_))));
        let later = r#"{"version": 2, "machine": {}}"#;
        assert!(matches!(parse_facts(later), Err(FactsError::Version(2))));
    }

    #[test]
    fn differences_fit_and_have_their_reason_once() {
        let found = [difference("a", "1"), difference("b", &"x".repeat(50))];
        let text = differences(&found, Some(40));
        assert_eq!(
            text,
            format!(
                "2 facts differ; there against here\ncosts\n  a: - | 1\n  b:\n      -\n    | {}~\n",
                "x".repeat(33)
            )
        );
        assert_eq!(differences(&[], None), "no fact differs\n");
        let text = "{\n  \"version\": 1,\n  \"differences\": [\n    {\n      \"name\": \"a\",\n\
            \x20     \"theirs\": null,\n      \"ours\": \"1\",\n      \"why\": \"costs\"\n    }\n\
            \x20 ]\n}\n";
        assert_eq!(differences_json(&found[..1]), text);
    }
}
