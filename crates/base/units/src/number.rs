//! Counts as fractions and back: the conversions for which there is no `From`.

/// A count for division, or a place on a drawing; beyond 2^53 it is rounded, which no rate notices.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// The same of a count of things in memory.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
pub fn real_usize(count: usize) -> f64 {
    count as f64
}

/// Rounded; what is negative or no number is 0, what is too large the largest, as the cast does it.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom, and the cast saturates"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A place in memory: rounded down, and else as [`whole`].
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom, and the cast saturates"
)]
pub fn floor(value: f64) -> usize {
    value as usize
}

/// A length or count in memory.
///
/// # Panics
/// Never: no target has more than 64 bits.
pub fn to_u64(count: usize) -> u64 {
    u64::try_from(count).expect("a usize has at most 64 bits")
}

/// Numbers that anybody may have written, added up; `u64::MAX` where they are more.
pub fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A part of a whole in thousandths; none of nothing.
pub fn permille(part: u64, whole: u64) -> u64 {
    let share = (u128::from(part) * 1000).checked_div(whole.into()).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Nanoseconds from one time to a later one; 0 if it is earlier.
pub fn between(from_ns: i64, to_ns: i64) -> u64 {
    to_ns.saturating_sub(from_ns).max(0).unsigned_abs()
}

/// How many a second, rounded down, of a count over a length of time; one of no length is taken for
/// a nanosecond.
pub fn per_second(count: u64, ns: u64) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / u128::from(ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_and_bounded() {
        assert_eq!(per_second(3, 2_000_000_000), 1);
        assert_eq!(per_second(7, 0), 7_000_000_000);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn counts_become_fractions_and_come_back() {
        for count in [0, 1, 4096, (1 << 53) - 1, 1 << 60] {
            assert_eq!(whole(real(count)), count);
        }
        assert_eq!(floor(real_usize(7) / 2.0), 3);
    }

    #[test]
    fn what_does_not_fit_is_the_nearest_that_does() {
        assert_eq!([-3.0, f64::NAN, 2.5, 2.4, f64::INFINITY].map(whole), [0, 0, 3, 2, u64::MAX]);
        assert_eq!([-0.5, f64::NAN, 2.9, f64::INFINITY].map(floor), [0, 0, 2, usize::MAX]);
    }

    #[test]
    fn time_does_not_run_backwards() {
        assert_eq!((between(5, 7), between(7, 5)), (2, 0));
        assert_eq!(between(i64::MIN, i64::MAX), i64::MAX.unsigned_abs());
    }

    #[test]
    fn numbers_of_others_add_up_to_at_most_the_largest() {
        assert_eq!((sum([1, 2, 3]), sum([u64::MAX, 1]), sum([])), (6, u64::MAX, 0));
        assert_eq!((permille(1, 8), permille(5, 0), permille(7, 7)), (125, 0, 1000));
        assert_eq!(permille(u64::MAX, u64::MAX), 1000);
        assert_eq!(permille(u64::MAX, 1), u64::MAX);
    }
}
