//! Text from outside, made safe for where it goes: the one place that does.
//!
//! Names come from packets, files, paths, processes and disks. Who chooses them must not steer
//! a terminal, turn the direction of what stands beside them, hide, end a line and begin another
//! one, become a formula of a spreadsheet, an element of a page or the end of a text of JSON. What
//! is not harmless is escaped so that it can be seen, and for programs so that it can be undone:
//!
//! - JSON: `\u001b`, as every reader of JSON knows it.
//! - CSV: `\u{1b}`, and a backslash before `u{` as `\u{5c}`; an apostrophe in front of what would
//!   be a formula. docs/query.md says how to undo it.

use core::fmt::Write as _;
use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

/// Letters, digits and visible signs; not controls, marks of direction, invisible or combining
/// characters, unusual blanks, or what a font may have drawn as anything.
fn is_harmless(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        // Controls; what is drawn as nothing, although some of it counts as letters.
        '\0'..='\u{a0}'
        | '\u{ad}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{ffa0}' => false,
        // Signs of Latin-1; punctuation; currencies; arrows, mathematics, boxes, blocks, shapes;
        // punctuation of East Asia and its wide forms; pictures.
        '\u{a1}'..='\u{ff}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}'
        | '\u{20a0}'..='\u{20bf}'
        | '\u{2190}'..='\u{2bff}'
        | '\u{3001}'..='\u{3029}'
        | '\u{ff01}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}' => true,
        letter => letter.is_alphanumeric(),
    }
}

/// A name, a path or an error as a part of a line for people.
pub fn printable(text: &str) -> String {
    escaped(text, is_harmless).into_owned()
}

/// A path as a part of a line for people.
pub fn path(path: impl AsRef<Path>) -> String {
    printable(&path.as_ref().to_string_lossy())
}

/// A path as a value for programs, in JSON or CSV, which see to the rest themselves.
pub fn path_value(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// Whole lines for people, made of parts that are safe: what still is not is escaped here, last of
/// all. Ends of lines stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter == '\n' || is_harmless(letter))
}

/// The same with the colours that plots have on a terminal (`ESC [ 31 m`).
pub fn coloured_lines(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    for (at, part) in text.split("\u{1b}[").enumerate() {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let is_colour = part.get(digits..).is_some_and(|rest| rest.starts_with('m'));
        match (at, is_colour) {
            (0, _) => {}
            (_, true) => safe.push_str("\u{1b}["),
            (_, false) => safe.push_str(&lines("\u{1b}[")),
        }
        safe.push_str(&lines(part));
    }
    Cow::Owned(safe)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is ASCII, and this is asked of every line that is shown.
    let is_plain = text.bytes().all(|byte| byte.is_ascii() && stays(char::from(byte)));
    if is_plain || text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if stays(letter) {
            safe.push(letter);
        } else {
            safe.extend(letter.escape_default());
        }
    }
    Cow::Owned(safe)
}

/// Between the values of a list in a cell of CSV. In a value it is escaped.
const CSV_SEPARATOR: char = '|';

/// A cell of CSV (RFC 4180) with text.
pub fn csv_cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    escape_csv(text, |_| true, &mut safe);
    csv_quoted(text, safe)
}

/// A cell of CSV with several texts. They can be split again at `|`, which is escaped in a text.
pub fn csv_list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut safe = String::new();
    let mut first = None;
    for text in texts {
        if first.is_some() {
            safe.push(CSV_SEPARATOR);
        }
        first = first.or(Some(text));
        escape_csv(text, |letter| letter != CSV_SEPARATOR, &mut safe);
    }
    csv_quoted(first.unwrap_or_default(), safe)
}

fn escape_csv(text: &str, stays: impl Fn(char) -> bool, safe: &mut String) {
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let is_escape = letter == '\\' && rest.as_str().starts_with("u{");
        if is_harmless(letter) && stays(letter) && !is_escape {
            safe.push(letter);
        } else {
            write!(safe, "\\u{{{:x}}}", u32::from(letter)).expect("a string takes all text");
        }
    }
}

/// The cell, no formula although `text` is at its beginning, in quotes where it needs them.
fn csv_quoted(text: &str, mut cell: String) -> String {
    if is_formula(text) {
        cell.insert(0, '\'');
    }
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

/// A spreadsheet would compute it; and what looks as if it had been kept from that.
fn is_formula(text: &str) -> bool {
    let text = text.trim_start_matches('\'');
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}'])
        || text.starts_with('\u{ff20}')
}

/// Text between and within elements of HTML and SVG.
pub fn markup(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // The blank between groups of digits.
            '\u{202f}' => safe.push(letter),
            letter if is_harmless(letter) => safe.push(letter),
            letter => safe.extend(letter.escape_default()),
        }
    }
    safe
}

/// An object of JSON in one line, and a line feed.
///
/// # Panics
/// When keys of a map are no texts.
pub fn json_line(value: &impl Serialize) -> String {
    ascii_json(serde_json::to_string(value)) + "\n"
}

/// The same without the line feed, as a part of another text of JSON.
pub fn json_part(value: &impl Serialize) -> String {
    ascii_json(serde_json::to_string(value))
}

/// JSON for people and programs, and a line feed.
pub fn json_pretty(value: &impl Serialize) -> String {
    ascii_json(serde_json::to_string_pretty(value)) + "\n"
}

/// What is not harmless stands only within texts, where it may be escaped.
fn ascii_json(text: serde_json::Result<String>) -> String {
    // Reports are trees of numbers and texts: nothing in them can refuse to be written.
    let text = text.expect("reports have only text keys");
    if text.chars().all(|letter| letter == '\n' || is_harmless(letter)) {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if letter == '\n' || is_harmless(letter) {
            safe.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            write!(safe, "\\u{unit:04x}").expect("a string takes all text");
        }
    }
    safe
}

/// An error with what is behind it, as it can be printed.
pub fn with_causes(error: &dyn core::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    printable(&text)
}

#[cfg(test)]
mod tests;
