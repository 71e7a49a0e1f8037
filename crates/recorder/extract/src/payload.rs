//! Looking for something in the payload of packets.

use core::fmt;
use std::str::FromStr;

use regex::bytes::{Regex, RegexBuilder};
use thiserror::Error;

/// Compiled expressions may take so much memory: more is no expression for packets.
const PROGRAM_BYTES_MAX: usize = 8 << 20;

/// Bytes that a payload has to contain: a text, `hex:` with hex digits, or `re:` with a regular
/// expression over bytes.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// The text is no pattern.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Nothing is in every payload.
    #[error("the payload to look for is empty")]
    Empty,
    /// After `hex:`.
    #[error("hex: is followed by pairs of hex digits, such as hex:16 03 01 or hex:160301")]
    Hex,
    /// After `re:`.
    #[error("{0}")]
    Regex(String),
}

impl Pattern {
    /// Whether the payload contains it.
    pub fn is_in(&self, payload: &[u8]) -> bool {
        self.regex.is_match(payload)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let source = if let Some(digits) = text.strip_prefix("hex:") {
            let bytes = bytes_of(digits).ok_or(PatternError::Hex)?;
            literal(&bytes)
        } else if let Some(expression) = text.strip_prefix("re:") {
            expression.to_owned()
        } else {
            literal(text.strip_prefix("text:").unwrap_or(text).as_bytes())
        };
        if source.is_empty() {
            return Err(PatternError::Empty);
        }
        let mut builder = RegexBuilder::new(&source);
        // Bytes are bytes: `.` and \xff are any of them, not characters.
        builder.unicode(false).size_limit(PROGRAM_BYTES_MAX);
        let regex = builder.build().map_err(|error| PatternError::Regex(in_short(&error)))?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

/// The expression for these bytes.
fn literal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("\\x{byte:02x}"))
}

/// The last line of an error says what is wrong; those before draw where.
fn in_short(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// As it was given.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let is_between = |letter: &char| letter.is_whitespace() || *letter == ':';
    let digits: Option<Vec<u8>> = digits
        .chars()
        .filter(|letter| !is_between(letter))
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, payload: &[u8], expect: bool) {
        assert_eq!(pattern.parse::<Pattern>().unwrap().is_in(payload), expect, "{pattern}");
    }

    #[test]
    fn texts_hex_digits_and_expressions_are_found() {
        check("GET /", b"xxGET / HTTP/1.1", true);
        check("get /", b"xxGET / HTTP/1.1", false);
        check("a.c", b"abc", false);
        check("text:hex:", b"hex:00", true);
        check("hex:16 03 01", b"\x16\x03\x01", true);
        check("hex:16:03:01", b"\x16\x03\x02", false);
        check("hex:FF00", b"a\xff\x00b", true);
        check(r"re:(?i)user-agent:\s*curl", b"User-Agent: CURL/8", true);
        check(r"re:^\x16\x03[\x00-\x04]", b"\x16\x03\x03", true);
        check(r"re:\xff.\xfe", b"\xff\x80\xfe", true);
        check("\u{e9}", "caf\u{e9}".as_bytes(), true);
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_one_line() {
        for text in ["", "hex:", "hex:1", "hex:zz", "re:", "re:(", r"re:\p{Greek}", "re:a{9999999}"]
        {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.lines().count() == 1 && !error.is_empty(), "{text}: {error}");
        }
    }
}
