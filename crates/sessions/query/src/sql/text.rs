//! Texts in SQL.

/// Takes the meaning from `%`, `_` and itself; a backslash would have one in some engines.
const ESCAPE: char = '!';
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";

/// A text as a literal of SQL. What is no visible ASCII is written by its number, so that no reader
/// of the statement, and no terminal, makes something else of it.
pub fn sql_literal(text: &str) -> String {
    let mut parts = Vec::new();
    let mut plain = String::new();
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            plain.push(character);
            if character == '\'' {
                plain.push(character);
            }
        } else {
            if !plain.is_empty() {
                parts.push(format!("'{plain}'"));
                plain.clear();
            }
            parts.push(format!("chr({})", u32::from(character)));
        }
    }
    if !plain.is_empty() || parts.is_empty() {
        parts.push(format!("'{plain}'"));
    }
    if parts.len() == 1 { parts.remove(0) } else { format!("({})", parts.join(" || ")) }
}

/// ASCII letters in lower case, and nothing else: `lower` would change others, too (RFC 4343).
pub(super) fn folded(read: &str) -> String {
    format!("translate({read}, '{UPPER}', '{LOWER}')")
}

/// Whether a text has these parts with anything between them. Of one that is `folded` the parts
/// have to be, too.
pub(super) fn like(left: &str, parts: &[String], is_folded: bool) -> String {
    let escaped = |part: &String| {
        let mut text = String::new();
        for character in part.chars() {
            if matches!(character, '%' | '_' | ESCAPE) {
                text.push(ESCAPE);
            }
            text.push(if is_folded { character.to_ascii_lowercase() } else { character });
        }
        text
    };
    let pattern = parts.iter().map(escaped).collect::<Vec<_>>().join("%");
    format!("{left} LIKE {} ESCAPE '{ESCAPE}'", sql_literal(&pattern))
}
