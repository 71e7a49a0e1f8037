//! Sequences of a volume: by which its slots are told apart over its whole life.

use core::num::ParseIntError;
use core::ops::{Add, AddAssign, Range, RangeInclusive, Sub};
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of a slot's use in a volume's life, which is never reset; 0 stands before the first.
/// In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Behind all that are used, for open ranges.
    pub const MAX: Self = Self(u64::MAX);

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next use of a slot.
    ///
    /// # Panics
    /// Behind the last one.
    #[must_use]
    pub fn next(self) -> Self {
        self + 1
    }

    /// The use of a slot before it.
    ///
    /// # Panics
    /// Of the first one.
    #[must_use]
    pub fn previous(self) -> Self {
        self - 1
    }

    /// That many uses later, if there is one.
    pub fn checked_add(self, count: u64) -> Option<Self> {
        self.0.checked_add(count).map(Self)
    }

    /// That many uses earlier, if there is one.
    pub fn checked_sub(self, count: u64) -> Option<Self> {
        self.0.checked_sub(count).map(Self)
    }

    /// That many uses later, or the last one.
    #[must_use]
    pub fn saturating_add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// That many uses earlier, or 0.
    #[must_use]
    pub fn saturating_sub(self, count: u64) -> Self {
        Self(self.0.saturating_sub(count))
    }

    /// How many uses it is later than another; 0 where it is not.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Sequence {
    type Output = Self;

    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl AddAssign<u64> for Sequence {
    fn add_assign(&mut self, count: u64) {
        self.0 += count;
    }
}

impl Sub<u64> for Sequence {
    type Output = Self;

    fn sub(self, count: u64) -> Self {
        Self(self.0 - count)
    }
}

/// How many uses it is later.
impl Sub for Sequence {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

shown_as_number!(Sequence);

/// As a whole number.
impl FromStr for Sequence {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Ranges of sequences, one after the other: the trait by which ranges of integers do this is not
/// stable.
pub trait EachSequence {
    /// Every sequence of the range, in its order.
    fn each(self) -> impl DoubleEndedIterator<Item = Sequence> + Clone + Send;
}

impl EachSequence for Range<Sequence> {
    fn each(self) -> impl DoubleEndedIterator<Item = Sequence> + Clone + Send {
        (self.start.0..self.end.0).map(Sequence)
    }
}

impl EachSequence for RangeInclusive<Sequence> {
    fn each(self) -> impl DoubleEndedIterator<Item = Sequence> + Clone + Send {
        (self.start().0..=self.end().0).map(Sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_walked_from_both_ends() {
        let (first, last) = (Sequence(7), Sequence(9));
        assert_eq!((first..last).each().collect::<Vec<_>>(), [first, Sequence(8)]);
        assert_eq!((first..=last).each().next_back(), Some(last));
        assert_eq!((last..first).each().next(), None);
        assert_eq!((last - first, first.since(last), first.next()), (2, 0, Sequence(8)));
    }
}
