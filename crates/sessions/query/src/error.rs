//! What is wrong with a query, where, and which word was probably meant.

use core::fmt;

use units::{around, start_of};

use crate::field::Field;
use crate::nearest::nearest;
use crate::parse::WORDS;

/// Bytes that are shown of a word, and of a line on each side of a mistake.
const SHOWN_BYTES: usize = 160;

/// Why a text is not a query. Points at the first character that cannot be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Bytes from the start of the text to the place of the problem; the length of the text at its
    /// end.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
    /// The word that was probably meant.
    pub suggestion: Option<String>,
}

/// The kinds of mistakes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Neither a keyword nor a field nor an address.
    #[error("{word:?} is no word of the query language")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// Something else has to stand here.
    #[error("expected {what}, found {found}")]
    Expected {
        /// What would be right.
        what: &'static str,
        /// What stands there instead.
        found: String,
    },
    /// A value that the condition before it cannot take.
    #[error("{text:?} is not {what}")]
    NotA {
        /// What would be right.
        what: &'static str,
        /// The value.
        text: String,
    },
    /// A question about single packets or about what is not kept of sessions.
    #[error("{word:?} cannot be asked of sessions; {remedy}")]
    NotOfSessions {
        /// The word.
        word: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A word that other programs have for something that is asked for otherwise here.
    #[error("{word:?} is a word of other programs; here write {here}")]
    Elsewhere {
        /// The word.
        word: String,
        /// What to write instead.
        here: &'static str,
    },
    /// The name of an application where it could be that of a port, too.
    #[error("{word:?} may be a port or an application; write \"port {word}\" or \"app {word}\"")]
    Ambiguous {
        /// The word.
        word: String,
    },
    /// An order comparison of something that has none.
    #[error("{field} has no order; compare it with =, != or in")]
    NoOrder {
        /// The field.
        field: &'static str,
    },
    /// A quote that is never closed.
    #[error("this quote is not closed")]
    UnclosedQuote,
    /// More than [`crate::MAXIMUM_DEPTH`] levels.
    #[error(
        "more than {} levels of parentheses or changes between and and or",
        crate::MAXIMUM_DEPTH
    )]
    TooDeep,
}

impl Problem {
    /// With the beginning of a word that fills more than a line.
    fn shortened(mut self) -> Self {
        let word = match &mut self {
            Self::UnknownWord { word }
            | Self::Expected { found: word, .. }
            | Self::NotA { text: word, .. }
            | Self::NotOfSessions { word, .. }
            | Self::Elsewhere { word, .. }
            | Self::Ambiguous { word } => word,
            Self::NoOrder { .. } | Self::UnclosedQuote | Self::TooDeep => return self,
        };
        if word.len() > SHOWN_BYTES {
            *word = format!("{}...", start_of(word, SHOWN_BYTES));
        }
        self
    }
}

impl Error {
    pub(crate) fn new(at: usize, problem: Problem) -> Self {
        Self { at, problem: problem.shortened(), suggestion: None }
    }

    pub(crate) fn unknown(at: usize, word: &str) -> Self {
        let known = WORDS.iter().copied().chain(Field::names());
        let suggestion = nearest(word, known).map(str::to_owned);
        Self { suggestion, ..Self::new(at, Problem::UnknownWord { word: word.to_owned() }) }
    }

    /// The error with the line of the query that it is in and a caret under the character. `text`
    /// is what was parsed.
    pub fn render(&self, text: &str) -> String {
        let at = text.floor_char_boundary(self.at);
        let (before, after) = text.split_at(at);
        let start = before.rsplit('\n').next().unwrap_or("");
        let rest = after.lines().next().unwrap_or("");
        let (line, at) = around(&format!("{start}{rest}"), start.len(), SHOWN_BYTES);
        let start = start_of(&line, at);
        // Tabs stay tabs, so that the caret stands below its character whatever their width.
        let pad: String = start.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{self}\n  {line}\n  {pad}^")
    }
}

/// One line: the problem, its offset in bytes, and the suggestion.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.problem, self.at)?;
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean {word:?}?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_lines_and_words_the_part_around_the_mistake_is_shown() {
        let word = "\u{e9}".repeat(50_000);
        let text = format!("{} {word} and udp", "tcp or".repeat(1000));
        let error = Error::unknown(6001, &word);
        let shown = error.render(&text);
        assert!(shown.len() < 1000, "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines[2].find('^').unwrap();
        assert!(lines[1].starts_with("  ...") && lines[1].ends_with("\u{e9}..."), "{shown}");
        assert!(lines[1][caret..].starts_with('\u{e9}'), "{shown}");
    }

    #[test]
    fn the_nearest_word_is_suggested_and_far_ones_are_not() {
        for (word, expected) in [
            ("hsot", Some("host")),
            ("BEFOR", Some("before")),
            ("orig_packts", Some("orig_packets")),
            ("zebra", None),
        ] {
            assert_eq!(Error::unknown(0, word).suggestion.as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn the_caret_stands_under_the_character() {
        let error = Error::new(9, Problem::UnclosedQuote);
        assert_eq!(
            error.render("tcp and\n\u{e9}\"ab"),
            "this quote is not closed (at byte 9)\n  \u{e9}\"ab\n  ^",
            "an offset inside a character goes back to its start"
        );
        assert!(error.render("").ends_with("\n  \n  ^"));
    }
}
