//! Text to tokens. A word is a run of anything but white space, quotes and ``( ) { } , ! = < > &
//! |``.

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
    if let Some(body) = rest.strip_prefix('"') {
        let inside = quoted(body).ok_or(Error::new(at, Problem::UnclosedQuote))?;
        return Ok((TokenKind::Quoted(inside), inside.len() + 2));
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

/// The text up to the closing quote; a backslash takes the next character with it.
fn quoted(body: &str) -> Option<&str> {
    let mut escaped = false;
    let end = body.find(|c| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    })?;
    body.get(..end)
}

/// A community id keeps the `=` that pads its base64, so that it needs no quotes.
fn word(rest: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "\"(){},!<>&|".contains(c);
    let community_id = rest.starts_with("1:");
    let end = rest.find(|c| ends(c) || (c == '=' && !community_id)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or("")
}
