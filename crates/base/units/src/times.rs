//! Sets of times.

use core::ops::RangeInclusive;

use crate::Timestamp;

/// A set of times, as stretches in their order that neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times(Vec<RangeInclusive<Timestamp>>);

impl Times {
    /// No times at all.
    pub const NONE: Self = Self(Vec::new());

    /// All times from the first to the last; none where the first is later.
    pub fn of(from: Timestamp, to: Timestamp) -> Self {
        Self(if from <= to { vec![from..=to] } else { Vec::new() })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stretches.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Timestamp, Timestamp)> + '_ {
        self.0.iter().map(|stretch| (*stretch.start(), *stretch.end()))
    }

    /// How many stretches there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether it has all times that `other` has.
    pub fn has_all_of(&self, other: &Self) -> bool {
        other.minus(self).is_empty()
    }

    /// Adds the times of another set.
    pub fn add(&mut self, other: &Self) {
        let mut all = core::mem::take(&mut self.0);
        all.extend(other.0.iter().cloned());
        all.sort_by_key(|stretch| *stretch.start());
        for stretch in all {
            match self.0.last_mut() {
                Some(last) if *stretch.start() <= last.end().plus_nanos(1) => {
                    *last = *last.start()..=*last.end().max(stretch.end());
                }
                _ => self.0.push(stretch),
            }
        }
    }

    /// The times that both have.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (from, to) in self.iter() {
            for (other_from, other_to) in other.iter() {
                both.add(&Self::of(from.max(other_from), to.min(other_to)));
            }
        }
        both
    }

    /// The times that the other has not.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (mut from, to) in self.iter() {
            let mut is_over = false;
            for (other_from, other_to) in other.iter() {
                if other_to < from {
                    continue;
                }
                if other_from > to {
                    break;
                }
                if other_from > from {
                    left.0.push(from..=other_from.plus_nanos(-1));
                }
                is_over = other_to >= to;
                from = other_to.plus_nanos(1);
                if is_over {
                    break;
                }
            }
            if !is_over {
                left.0.push(from..=to);
            }
        }
        left
    }
}

impl FromIterator<(Timestamp, Timestamp)> for Times {
    fn from_iter<I: IntoIterator<Item = (Timestamp, Timestamp)>>(stretches: I) -> Self {
        let mut times = Self::default();
        for (from, to) in stretches {
            times.add(&Self::of(from, to));
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: i64 = 40;

    fn times() -> impl Strategy<Value = Times> {
        let stretch = (0..END, 0..END).prop_map(|(from, to)| (Timestamp(from), Timestamp(to)));
        prop::collection::vec(stretch, 0..6).prop_map(Times::from_iter)
    }

    fn has(times: &Times, at: i64) -> bool {
        times.iter().any(|(from, to)| (from..=to).contains(&Timestamp(at)))
    }

    proptest! {
        /// Time by time.
        #[test]
        fn sets_are_what_their_times_are(a in times(), b in times()) {
            let mut sum = a.clone();
            sum.add(&b);
            let (both, left) = (a.and(&b), a.minus(&b));
            for at in 0..END {
                prop_assert_eq!(has(&sum, at), has(&a, at) || has(&b, at));
                prop_assert_eq!(has(&both, at), has(&a, at) && has(&b, at));
                prop_assert_eq!(has(&left, at), has(&a, at) && !has(&b, at));
            }
            for set in [&sum, &both, &left] {
                let stretches: Vec<_> = set.iter().collect();
                prop_assert!(stretches.windows(2).all(|pair| pair[0].1.plus_nanos(1) < pair[1].0));
            }
            prop_assert_eq!(sum.has_all_of(&a) && sum.has_all_of(&b), true);
        }
    }

    #[test]
    fn the_ends_of_time_are_times_like_others() {
        let all = Times::of(Timestamp::MIN, Timestamp::MAX);
        assert!(all.minus(&all).is_empty() && all.and(&all) == all);
        let left = all.minus(&Times::of(Timestamp(0), Timestamp(0)));
        assert_eq!(left.count(), 2);
        assert!(Times::of(Timestamp(1), Timestamp(0)).is_empty());
    }
}
