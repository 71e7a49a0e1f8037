//! What is harmless: on a terminal, for a spreadsheet, in a page.

use serde_json::Value;

use crate::machine::Ran;

/// The rest of a hostile name behind its line feed: at the begin of a line it would be one of ours.
pub(super) const INJECTED: &str = "INJECTED";

/// Elements that have no end.
const VOID: [&str; 3] = ["meta", "br", "!doctype"];

fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffd}')
}

/// No character steers a terminal, hides, or turns what stands beside it; no foreign line.
pub(super) fn terminal(what: &str, text: &str) {
    let bad = text.chars().find(|&letter| letter != '\n' && steers(letter));
    assert_eq!(bad, None, "{what}: {text:?}");
    let foreign = text.lines().find(|line| line.starts_with(INJECTED));
    assert_eq!(foreign, None, "{what}: {text:?}");
}

pub(super) fn ran(what: &str, ran: &Ran) {
    terminal(what, &ran.out);
    terminal(what, &ran.err);
}

/// All values of a text of JSON, one or many.
pub(super) fn json(what: &str, text: &str) -> Vec<Value> {
    terminal(what, text);
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.map(|value| value.unwrap_or_else(|error| panic!("{what}: {error}: {text}"))).collect()
}

/// Rows of CSV by RFC 4180, none of whose cells is computed by a spreadsheet.
pub(super) fn csv(what: &str, text: &str) -> Vec<Vec<String>> {
    terminal(what, text);
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "{what}: {row:?}");
        for cell in row {
            let is_number = cell.parse::<f64>().is_ok();
            let is_formula = cell.starts_with(['=', '+', '-', '@']) && !is_number;
            assert!(!is_formula, "{what}: {cell:?}");
        }
    }
    rows
}

fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(core::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    cells.push(cell);
    cells
}

/// A cell of text as it was, as docs/query.md says.
pub(super) fn undone(cell: &str) -> String {
    let begins = |text: &str| text.trim_start_matches('\'').starts_with(['=', '+', '-', '@']);
    let text = cell.strip_prefix('\'').filter(|text| begins(text)).unwrap_or(cell);
    let mut parts = text.split("\\u{");
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (hex, behind) = part.split_once('}').unwrap();
        whole.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
        whole.push_str(behind);
    }
    whole
}

/// Elements are closed in their order, none is of a foreign name and none has a handler.
pub(super) fn markup(what: &str, text: &str) {
    terminal(what, &text.replace('\u{202f}', ""));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        references(what, before);
        let (tag, behind) = tag.split_once('>').unwrap_or_else(|| panic!("{what}: {tag:?}"));
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{what}");
            continue;
        }
        let name = tag.split([' ', '\n', '/']).next().unwrap();
        assert!(!["img", "script", "iframe", "object", "b", "a"].contains(&name), "{what}: {tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{what}: {tag}");
        assert!(!tag.contains("onerror"), "{what}: {tag}");
        references(what, tag);
        if name == "style" {
            rest = rest.split_once("</style>").unwrap().1;
        } else if !tag.ends_with('/') && !VOID.contains(&name.to_ascii_lowercase().as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{what}: {open:?}");
}

fn references(what: &str, text: &str) {
    for (at, _) in text.match_indices('&') {
        let name = text[at..].split_inclusive(';').next().unwrap();
        let is_known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].contains(&name);
        assert!(is_known, "{what}: {name:?}");
    }
}
