//! Rates, and lengths as counts.

pub(crate) use units::number::{between, real, to_u64, whole};

/// Bytes a second; of no time at all the most there is.
pub(crate) fn rate(bytes: u64, ns: u64) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// For lengths of buffers.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("the length of a buffer in memory")
}
