//! How conditions are combined, and how values are compared.

use core::cmp::Ordering;
use core::fmt;

/// How neighbours are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Join {
    And,
    Or,
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::And { "and" } else { "or" })
    }
}

/// What stands between a field of text and a word that is looked for in it.
pub(crate) const MENTIONS: &str = "mentions";

/// A comparison with one value. "Not equal" is the negation of `Equal`, not one of these: a field
/// may have several values or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Comparison {
    /// Whether the comparison holds when the left side is `ordering` to the right.
    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Less => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::More => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        })
    }
}
