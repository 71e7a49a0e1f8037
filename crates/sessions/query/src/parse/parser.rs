//! One token ahead.

use units::Timestamp;

use crate::error::{Error, Problem};
use crate::parse::head::Head;
use crate::token::{Token, TokenKind, tokens};

/// The tokens of a text, and how far they are read.
pub(super) struct Parser<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    pub(super) next: usize,
    pub(super) now: Timestamp,
    /// The qualifiers that a bare address or number takes over: those of the condition before it.
    pub(super) inherited: Option<Head>,
    /// The condition stands behind `and`.
    pub(super) is_joined: bool,
    /// Parentheses not closed yet.
    pub(super) open: usize,
}

impl<'a> Parser<'a> {
    /// At the beginning of a text; `now` is what relative times count from.
    pub(super) fn new(text: &'a str, now: Timestamp) -> Result<Self, Error> {
        let tokens = tokens(text)?;
        Ok(Self { tokens, next: 0, now, inherited: None, is_joined: false, open: 0 })
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token<'a> {
        let last = self.tokens.last().copied().expect("tokens end with End");
        self.tokens.get(self.next + ahead).copied().unwrap_or(last)
    }

    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    pub(super) fn take_if(&mut self, kind: TokenKind<'_>) -> bool {
        let is = self.peek().kind == kind;
        self.next += usize::from(is);
        is
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is = self.peek().kind.is_word(word);
        self.next += usize::from(is);
        is
    }

    /// The error that the next token is not what it has to be.
    pub(super) fn expected(&self, what: &'static str) -> Error {
        let Token { at, kind } = self.peek();
        let mut error = Error::new(at, Problem::Expected { what, found: kind.describe() });
        if let TokenKind::Half(half) = kind {
            error.suggestion = Some(half.repeat(2));
        }
        error
    }

    pub(super) fn expect(&mut self, kind: TokenKind<'_>, what: &'static str) -> Result<(), Error> {
        if self.take_if(kind) { Ok(()) } else { Err(self.expected(what)) }
    }
}
