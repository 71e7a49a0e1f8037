//! Counts as fractions.

/// For division; beyond 2^53 it is rounded, which no rate notices.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// Of a length in memory.
pub(crate) fn length(len: usize) -> f64 {
    real(u64::try_from(len).unwrap_or(u64::MAX))
}

/// From one time to a later one.
pub(crate) fn between(from_ns: i64, to_ns: i64) -> u64 {
    to_ns.saturating_sub(from_ns).max(0).unsigned_abs()
}
