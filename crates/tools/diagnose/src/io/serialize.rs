//! Times and sizes as JSON has them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use units::Histogram;

/// What lies within a doubling.
#[derive(Serialize)]
struct Bucket {
    from: u64,
    count: u64,
}

/// How many, by the power of two.
pub(super) fn serialize_sizes<S: Serializer>(
    sizes: &BTreeMap<u32, u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(sizes.iter().map(|(log, count)| Bucket { from: 1 << log, count: *count }))
}

/// Quantiles, and how many in each doubling.
pub(super) fn serialize_times<S: Serializer>(times: &Histogram, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Times {
        count: u64,
        p50_ns: u64,
        p90_ns: u64,
        p99_ns: u64,
        p999_ns: u64,
        max_ns: u64,
        buckets: Vec<Bucket>,
    }
    let bucket = |(from, count)| Bucket { from, count };
    let times = Times {
        count: times.count(),
        p50_ns: times.quantile_ns(500),
        p90_ns: times.quantile_ns(900),
        p99_ns: times.quantile_ns(990),
        p999_ns: times.quantile_ns(999),
        max_ns: times.max_ns(),
        buckets: times.doublings().into_iter().map(bucket).collect(),
    };
    times.serialize(to)
}
