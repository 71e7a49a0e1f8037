//! Counts as fractions and back.

/// For division; beyond 2^53 it is rounded, which no rate notices.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// Rounded; negative is 0 and too large is the largest, as the cast does it.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom, and the cast saturates"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Bytes a second; of no time at all the most there is.
pub(crate) fn rate(bytes: u64, ns: u64) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// From one time to a later one.
pub(crate) fn between(from_ns: i64, to_ns: i64) -> u64 {
    to_ns.saturating_sub(from_ns).max(0).unsigned_abs()
}

/// Lossless on every target this builds for.
pub(crate) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).expect("usize has at most 64 bits")
}

/// For lengths of buffers.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("the length of a buffer in memory")
}
