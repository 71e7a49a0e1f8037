//! Writing beside readers: what they cost.

use core::ops::Range;

use crate::bench::Bench;
use crate::error::Error;
use crate::latency;
use crate::plan::{Part, Plan};
use crate::readers::Readers;
use crate::report::Mixed;
use crate::stream::{Stream, fill, fill_beside};

/// Blocks under way: more than a recorder has, because reads hold up the thread.
const DEPTH: usize = 16;
/// Stretches of the surface, the first at its beginning, the last at its end.
const STRETCHES: u64 = 3;
/// Streams read so much of what the disk writes without them.
const STREAM_SHARE: u64 = 5;

/// Fills some stretches alone and beside readers, then writes at four fifths of what was
/// guaranteed beside them.
pub(crate) fn run(bench: &mut Bench<'_>, plan: &Plan, pool_bytes: u64) -> Result<Mixed, Error> {
    let stretches = stretches(bench.size_bytes(), plan);
    if stretches.is_empty() {
        let minimum_bytes = plan.block_bytes * STRETCHES;
        return Err(Error::TooSmall { part: Part::Mixed, minimum_bytes });
    }
    let mut stream = Stream::new(plan.block_bytes, DEPTH, plan.verifies, &mut bench.random)?;
    let alone = fill(bench, Part::Mixed, &mut stream, &stretches)?;
    let mut load = plan.readers;
    if load.stream_bytes_per_s == 0 {
        load.stream_bytes_per_s = alone.rate() / STREAM_SHARE;
    }
    let mut readers = Readers::new(bench, &load)?;
    let beside = fill_beside(bench, (Part::Mixed, &mut readers), &mut stream, &stretches)?;
    let reads = readers.finish(bench);
    drop(stream);
    let (pool_bytes, alone_bytes_per_s) = alone.believed(pool_bytes);
    let (_, beside_bytes_per_s) = beside.believed(pool_bytes);
    let mut readers = Readers::new(bench, &load)?;
    let offered = plan.latency_bytes_per_s;
    let offered = offered.unwrap_or(beside_bytes_per_s / 5 * 4).max(1);
    let latency = latency::run_beside(bench, (Part::Mixed, &mut readers), plan, offered)?;
    let reads_at_rate = readers.finish(bench);
    Ok(Mixed {
        load,
        pool_bytes,
        alone_bytes_per_s,
        beside_bytes_per_s,
        alone,
        beside,
        reads,
        latency,
        reads_at_rate,
    })
}

/// Stretches of equal length over the surface, `plan.mixed_bytes` in all.
fn stretches(size_bytes: u64, plan: &Plan) -> Vec<Range<u64>> {
    let block = plan.block_bytes;
    let len = plan.mixed_bytes.min(size_bytes) / STRETCHES / block * block;
    let last = (size_bytes.saturating_sub(len)) / block * block;
    let begin = |stretch: u64| last / (STRETCHES - 1) / block * block * stretch;
    let begins = (0..STRETCHES).map(|stretch| begin(stretch).min(last));
    if len == 0 { Vec::new() } else { begins.map(|begin| begin..begin + len).collect() }
}
