//! Text to tokens. A word is a run of anything but white space, quotes and ``( ) { } , ! = < > &
//! |``. Quotes are those of programs and those that a word processor makes of them: whoever pastes
//! a query means the same by both. An apostrophe within a word is a character like others.

use crate::error::{Error, Problem};
use crate::operator::{Comparison, Join};

/// A token and where it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) at: usize,
    pub(crate) kind: TokenKind<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind<'a> {
    Open,
    Close,
    BraceOpen,
    BraceClose,
    Comma,
    Join(Join),
    Not,
    NotEqual,
    Compare(Comparison),
    Word(&'a str),
    /// A single `&` or `|`.
    Half(&'a str),
    /// What stands between the quotes, its escapes unread.
    Quoted(&'a str),
    End,
}

impl TokenKind<'_> {
    /// The token as an error message names it.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Word(text) | Self::Half(text) => format!("{text:?}"),
            Self::Quoted(text) => format!("the quoted text {text:?}"),
            Self::Open => "\"(\"".to_owned(),
            Self::Close => "\")\"".to_owned(),
            Self::BraceOpen => "\"{\"".to_owned(),
            Self::BraceClose => "\"}\"".to_owned(),
            Self::Comma => "\",\"".to_owned(),
            Self::Join(join) => format!("\"{join}\""),
            Self::Not => "\"not\"".to_owned(),
            Self::NotEqual => "\"!=\"".to_owned(),
            Self::Compare(comparison) => format!("\"{comparison}\""),
            Self::End => "the end".to_owned(),
        }
    }

    pub(crate) fn is_word(self, expected: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(expected))
    }
}

/// Longest first where one is the start of another.
const SYMBOLS: [(&str, TokenKind<'_>); 17] = [
    ("&&", TokenKind::Join(Join::And)),
    ("||", TokenKind::Join(Join::Or)),
    ("!=", TokenKind::NotEqual),
    ("==", TokenKind::Compare(Comparison::Equal)),
    ("<=", TokenKind::Compare(Comparison::AtMost)),
    (">=", TokenKind::Compare(Comparison::AtLeast)),
    ("=", TokenKind::Compare(Comparison::Equal)),
    ("<", TokenKind::Compare(Comparison::Less)),
    (">", TokenKind::Compare(Comparison::More)),
    ("!", TokenKind::Not),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
    ("{", TokenKind::BraceOpen),
    ("}", TokenKind::BraceClose),
    (",", TokenKind::Comma),
    ("&", TokenKind::Half("&")),
    ("|", TokenKind::Half("|")),
];

/// What a quote opens with, and what closes it: English, German, French and Nordic ways.
const QUOTES: [(char, &[char]); 8] = [
    ('"', &['"']),
    ('\'', &['\'']),
    ('\u{201c}', &['\u{201d}']),
    ('\u{201e}', &['\u{201c}', '\u{201d}']),
    ('\u{201d}', &['\u{201d}']),
    ('\u{2018}', &['\u{2019}']),
    ('\u{201a}', &['\u{2018}', '\u{2019}']),
    ('\u{ab}', &['\u{bb}']),
];

/// All tokens of the text, the last one `End`.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let (kind, length) = token(rest, at)?;
        assert!(length > 0, "every token takes characters, or reading would not end");
        tokens.push(Token { at, kind });
        rest = rest.get(length..).unwrap_or("").trim_start();
    }
    tokens.push(Token { at: text.len(), kind: TokenKind::End });
    Ok(tokens)
}

fn token(rest: &str, at: usize) -> Result<(TokenKind<'_>, usize), Error> {
    if let Some((opens, closing)) = QUOTES.iter().find(|(opens, _)| rest.starts_with(*opens)) {
        let body = rest.get(opens.len_utf8()..).unwrap_or_default();
        let (inside, closes) =
            quoted(body, closing).ok_or(Error::new(at, Problem::UnclosedQuote))?;
        let length = opens.len_utf8() + inside.len() + closes.len_utf8();
        return Ok((TokenKind::Quoted(inside), length));
    }
    if let Some(&(symbol, kind)) = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        return Ok((kind, symbol.len()));
    }
    let word = word(rest);
    let kind = match word.to_ascii_lowercase().as_str() {
        "and" => TokenKind::Join(Join::And),
        "or" => TokenKind::Join(Join::Or),
        "not" => TokenKind::Not,
        _ => TokenKind::Word(word),
    };
    Ok((kind, word.len()))
}

/// The text up to the closing quote, and that; a backslash takes the next character with it.
fn quoted<'a>(body: &'a str, closing: &[char]) -> Option<(&'a str, char)> {
    let mut escaped = false;
    let end = body.find(|c| {
        let closes = closing.contains(&c) && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    })?;
    Some((body.get(..end)?, body.get(end..)?.chars().next()?))
}

/// A community id keeps the `=` that pads its base64, so that it needs no quotes.
fn word(rest: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "\"(){},!<>&|".contains(c);
    let community_id = rest.starts_with("1:");
    let end = rest.find(|c| ends(c) || (c == '=' && !community_id)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or("")
}
