//! What is wrong in a configuration, and where.

use core::fmt;
use core::ops::Range;

/// What is wrong, and in which line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub why: String,
}

impl Fault {
    pub(crate) fn at(text: &str, place: &Range<usize>, why: impl Into<String>) -> Self {
        let before = text.get(..place.start.min(text.len())).unwrap_or(text);
        Self { line: before.matches('\n').count() + 1, why: why.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, page::safe::printable(&self.why))
    }
}
