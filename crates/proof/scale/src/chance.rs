//! Lengths of time by chance.

use units::Random;
use units::number::{real, whole};

/// In (0, 1].
fn unit(random: &mut Random) -> f64 {
    const BITS: u64 = 1 << 53;
    (real(random.below(BITS)) + 1.0) / real(BITS)
}

/// Exponential with this mean: the time to the next of things that come independently.
pub(crate) fn exponential(random: &mut Random, mean_ns: i64) -> i64 {
    let time = -unit(random).ln() * real(mean_ns.max(0).unsigned_abs());
    i64::try_from(whole(time)).unwrap_or(i64::MAX)
}

/// Any time below.
pub(crate) fn even(random: &mut Random, below_ns: i64) -> i64 {
    i64::try_from(random.below(below_ns.max(1).unsigned_abs())).unwrap_or(0)
}
