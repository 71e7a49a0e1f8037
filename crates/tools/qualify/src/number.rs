//! Rates, and lengths as counts.

pub(crate) use units::number::{between, real, whole};

/// Bytes a second; of no time at all the most there is.
pub(crate) fn rate(bytes: u64, ns: u64) -> u64 {
    let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1));
    u64::try_from(per_second).unwrap_or(u64::MAX)
}

/// Lossless on every target this builds for.
pub(crate) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).expect("usize has at most 64 bits")
}

/// For lengths of buffers.
pub(crate) fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("the length of a buffer in memory")
}
