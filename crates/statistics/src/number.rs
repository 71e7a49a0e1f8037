//! Counts as fractions and back.

/// For division; beyond 2^53 it is rounded, which no statistic notices.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no From")]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// Rounded down; negative is 0 and too large is the largest, as the cast does it.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom, and the cast saturates"
)]
pub(crate) fn floor(value: f64) -> usize {
    value as usize
}
