//! All parts of a plan, one after another, and the verdict.

use crate::bench::Bench;
use crate::error::Error;
use crate::number::between;
use crate::plan::{Part, Plan};
use crate::report::{PartResult, Qualification, SweepStep, Target};
use crate::verdict::{Ask, judge};
use crate::{extents, fill, latency, reads, sweep};

/// Runs the parts that the target allows: without a writer those that only read. Ends early, and
/// says so, when it is told to stop.
pub fn run(
    mut bench: Bench<'_>,
    target: Target,
    plan: &Plan,
    ask: &Ask,
) -> Result<Qualification, Error> {
    let (started, begin_ns) = (bench.clock.realtime(), bench.now_ns());
    let may_write = bench.writer.is_some();
    let mut parts = Vec::new();
    for part in plan.parts.iter().filter(|part| may_write || part.runs_read_only()) {
        if bench.is_interrupted {
            break;
        }
        parts.push(run_part(&mut bench, *part, plan, (&parts, ask.pool_bytes))?);
    }
    let is_interrupted = bench.is_interrupted;
    let ns = between(begin_ns, bench.now_ns());
    let mut notes = bench.writer.as_deref().map_or_else(Vec::new, |writer| writer.notes().to_vec());
    notes.extend(bench.changed.as_ref().map(|changed| format!("stopped: {changed}")));
    let verdict = judge((&target, plan), &parts, is_interrupted, ask);
    let written = bench.written.into_ranges();
    Ok(Qualification { target, started, ns, parts, verdict, written, is_interrupted, notes })
}

fn run_part(
    bench: &mut Bench<'_>,
    part: Part,
    plan: &Plan,
    (before, pool_bytes): (&[PartResult], u64),
) -> Result<PartResult, Error> {
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
        Part::Reads => PartResult::Reads(reads::run(bench, plan)?),
    })
}

/// Four fifths of the lowest rate that a part before guaranteed or found; 100 MB/s where none did.
fn offered(before: &[PartResult], pool_bytes: u64) -> u64 {
    const UNKNOWN: u64 = 100_000_000;
    let slowest = before.iter().filter_map(|part| match part {
        PartResult::Fill(fill) | PartResult::Ring(fill) => Some(fill.trace.believed(pool_bytes).1),
        PartResult::Sweep(sweep) => sweep.steps.iter().map(SweepStep::rate).min(),
        PartResult::Passes(passes) => Some(passes.first.rate().min(passes.second.rate())),
        PartResult::Extents(_) | PartResult::Latency(_) | PartResult::Reads(_) => None,
    });
    slowest.min().map_or(UNKNOWN, |rate| rate / 5 * 4).max(1)
}
