//! Each part of a plan: which measurement it is.

use crate::bench::{Bench, Measured};
use crate::plan::{Part, Plan};
use crate::report::{PartResult, SweepStep};
use crate::{cpu, extents, files, fill, iops, latency, mixed, reads, sweep};

/// Measures a part, behind those that were measured before.
pub(crate) fn run(
    bench: &mut Bench<'_>,
    part: Part,
    plan: &Plan,
    (before, pool_bytes): (&[PartResult], u64),
) -> Measured<PartResult> {
    Ok(match part {
        Part::Sweep => PartResult::Sweep(sweep::run(bench, &plan.sweep)?),
        Part::Fill => PartResult::Fill(fill::first_to_last(bench, plan)?),
        Part::Passes => PartResult::Passes(fill::passes(bench, plan)?),
        Part::Ring => PartResult::Ring(fill::ring(bench, plan)?),
        Part::Extents => PartResult::Extents(extents::run(bench, plan)?),
        Part::Latency => {
            let bytes_per_s =
                plan.latency_bytes_per_s.unwrap_or_else(|| offered(before, pool_bytes));
            PartResult::Latency(latency::run(bench, plan, bytes_per_s)?)
        }
        Part::Mixed => PartResult::Mixed(Box::new(mixed::run(bench, plan, pool_bytes)?)),
        Part::Reads => PartResult::Reads(reads::run(bench, plan)?),
        Part::Iops => PartResult::Iops(iops::run(bench, plan)?),
        Part::Files => PartResult::Files(files::run(bench, plan)?),
        Part::Cpu => PartResult::Cpu(cpu::run(bench, plan)?),
    })
}

/// Four fifths of the lowest rate that a part before guaranteed or found; 100 MB/s where none did.
fn offered(before: &[PartResult], pool_bytes: u64) -> u64 {
    const UNKNOWN: u64 = 100_000_000;
    let slowest = before.iter().filter_map(|part| match part {
        PartResult::Fill(fill) | PartResult::Ring(fill) => Some(fill.believed(pool_bytes).1),
        PartResult::Sweep(sweep) => sweep.steps.iter().map(SweepStep::rate).min(),
        PartResult::Passes(passes) => Some(passes.first.rate().min(passes.second.rate())),
        _ => None,
    });
    slowest.min().map_or(UNKNOWN, |rate| rate / 5 * 4).max(1)
}
