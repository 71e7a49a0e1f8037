//! Latency of random reads, with the answers of a cache kept apart.

use device::{Pool, ROW_SIZE};

use crate::bench::Bench;
use crate::error::Error;
use crate::number::{between, real, to_u64};
use crate::plan::{Part, Plan};
use crate::report::Reads;
use vitals::Eighths;
use vitals::Latencies;

/// A gap of this factor without a single read in it is one between a cache and a medium.
const GAP: f64 = 3.0;
/// Reads that must lie on either side, of a thousand.
const SIDE_PERMILLE: u64 = 5;

/// One read at a time, each at a place of its own.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan) -> Result<Reads, Error> {
    let rows = bench.size_bytes() / to_u64(ROW_SIZE);
    let pool = Pool::new(1, ROW_SIZE)?;
    let mut row = pool.take().expect("a new pool has its buffer");
    let (mut latency, mut eighths) = (Latencies::default(), Eighths::default());
    let begin_ns = bench.now_ns();
    let time_ns = u64::try_from(plan.reads_time.as_nanos()).unwrap_or(u64::MAX);
    for done in 0..plan.reads {
        let offset = bench.random.below(rows) * to_u64(ROW_SIZE);
        let submitted_ns = bench.now_ns();
        bench.reader.read_at(offset, &mut row)?;
        let now_ns = bench.now_ns();
        let elapsed_ns = between(begin_ns, now_ns);
        latency.add(between(submitted_ns, now_ns));
        // It ends when so many are read, or when the time is over.
        let is_by_time = real(elapsed_ns) / real(time_ns) > real(done) / real(plan.reads);
        let part = if is_by_time { (elapsed_ns, time_ns) } else { (done, plan.reads) };
        eighths.add(part, between(submitted_ns, now_ns));
        let is_late = elapsed_ns >= time_ns;
        if bench.is_over(Part::Reads, done + 1, plan.reads) || is_late {
            break;
        }
    }
    Ok(Reads { eighths: eighths.finish(), ..tell_hits_apart(latency) })
}

/// Hits are what lies below the widest gap, if there is one.
fn tell_hits_apart(latency: Latencies) -> Reads {
    let total = latency.count();
    let is_side = |count: u64| count.saturating_mul(1000) >= total * SIDE_PERMILLE;
    let (mut widest, mut below, mut last_ns) = ((1.0, None), 0, 1);
    for (ns, count) in latency.buckets() {
        let factor = real(ns) / real(last_ns);
        if factor >= GAP.max(widest.0) && is_side(below) && is_side(total - below) {
            widest = (factor, Some((last_ns, below)));
        }
        (below, last_ns) = (below + count, ns.max(1));
    }
    let (hit_ns_max, cache_hits) = widest.1.unzip();
    Reads { latency, cache_hits: cache_hits.unwrap_or(0), hit_ns_max, eighths: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(groups: &[(u64, u64, u64)]) -> Latencies {
        let mut random = units::Random::new(7);
        let mut latencies = Latencies::default();
        for &(count, low, high) in groups {
            (0..count).for_each(|_| latencies.add(low + random.below(high - low)));
        }
        latencies
    }

    #[test]
    fn hits_lie_below_the_gap() {
        let disk = [(300, 80_000, 200_000), (9700, 3_000_000, 25_000_000)];
        let reads = tell_hits_apart(latencies(&disk));
        assert_eq!(reads.cache_hits, 300);
        assert!((190_000..210_000).contains(&reads.hit_ns_max.unwrap()), "{:?}", reads.hit_ns_max);
    }

    #[test]
    fn without_a_gap_nothing_is_called_a_hit() {
        for groups in [
            &[(10_000, 3_000_000, 25_000_000)][..],
            &[(10_000, 80_000, 120_000), (10, 9_000_000, 20_000_000)],
            &[(5000, 80_000, 200_000), (5000, 150_000, 900_000)],
        ] {
            let reads = tell_hits_apart(latencies(groups));
            assert_eq!((reads.cache_hits, reads.hit_ns_max), (0, None), "{groups:?}");
        }
    }
}
