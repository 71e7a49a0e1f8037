//! What is guaranteed on a part of the surface only, and by an array of which members are gone.
//!
//! A member that is gone costs no rate: its column is not written, and the others get what they
//! always get. What costs is giving a new one what it lacks. The recorder lets that wait while more
//! than a quarter of the pool is in use, so what three quarters of the pool carry is carried on the
//! way, and the way is as long as what recording leaves of the disks' time.

use crate::judged::{Judged, Lost, Order, Share};
use crate::laps::Laps;
use crate::number::{real, whole};
use crate::plan::{Array, Ask};
use crate::report::{Fill, PartResult, Sweep, SweepStep, Target};
use crate::step::step;
use crate::trace::Trace;

/// Shares of the surface in percent.
const SHARES: [u8; 3] = [100, 90, 75];
/// Places that a fill is summed up to.
const PLACES: usize = 64;
/// What a resilver reads of each member at a time (`writer`: four slots of 2 MiB).
const BATCH_BYTES: u64 = 8 << 20;

/// The shares of a target whose verdict stands on `first`.
pub(crate) fn shares(
    (target, laps): (&Target, &Laps<'_>),
    parts: &[PartResult],
    first: &Judged,
    pool_bytes: u64,
) -> Vec<Share> {
    let Some(places) = places(parts) else { return Vec::new() };
    let run = parts.iter().find(|part| part.part() == first.basis);
    let run = run.and_then(PartResult::run).filter(|_| first.order == Order::FirstToLast);
    // Behind a cache that is full, less of the surface is no faster.
    let most = run.and_then(step).map_or(u64::MAX, |step| step.after_bytes_per_s);
    let of_share = |percent: u8| {
        let size_bytes = share_of(target.size_bytes, percent);
        let rates = places.steps.iter().filter(|step| step.offset < size_bytes);
        let trace = match run {
            Some(fill) => fill.trace.prefix(size_bytes),
            None => laps.lap(&places, size_bytes, first.order),
        };
        Share {
            percent,
            size_bytes,
            order: first.order,
            is_computed: run.is_none(),
            guaranteed_bytes_per_s: trace.believed(pool_bytes).1.min(most),
            mean_bytes_per_s: whole(trace.mean()),
            minimum_bytes_per_s: rates.map(SweepStep::rate).min().unwrap_or(0),
        }
    };
    SHARES.into_iter().map(of_share).collect()
}

fn share_of(bytes: u64, percent: u8) -> u64 {
    bytes / 100 * u64::from(percent) + bytes % 100 * u64::from(percent) / 100
}

/// One and two members lost.
pub(crate) fn lost(
    (target, laps): (&Target, &Laps<'_>),
    parts: &[PartResult],
    first: &Judged,
    ask: &Ask,
) -> Vec<Lost> {
    let Some(Array { data_disks, parity_disks }) = ask.array else { return Vec::new() };
    let Some(trace) = trace_of((target, laps), parts, first) else { return Vec::new() };
    let guaranteed = trace.believed(while_rebuilding(first.pool_bytes)).1;
    let guaranteed = guaranteed.min(first.guaranteed_bytes_per_s);
    let needed = ask.bits_per_s.map(|bits| ask.mix.bytes_of(bits));
    let disks = u64::from(data_disks.max(1));
    let disk = (target.size_bytes / disks, first.mean_bytes_per_s / disks);
    let of_members = |members: u8| {
        let is_held = members <= parity_disks;
        let spare = needed.map(|needed| 1.0 - real(needed) / real(first.mean_bytes_per_s.max(1)));
        Lost {
            members,
            guaranteed_bytes_per_s: is_held.then_some(guaranteed),
            rebuild_ns: spare
                .filter(|_| is_held)
                .and_then(|spare| rebuild_ns(disk, laps.jump_ns(first.order), spare)),
        }
    };
    [1, 2].map(of_members).to_vec()
}

/// The pool that is left while members are given what they lack.
pub(crate) fn while_rebuilding(pool_bytes: u64) -> u64 {
    pool_bytes / 4 * 3
}

/// How long it takes to read a disk of so many bytes at so many bytes a second, a batch at a time
/// and the writer between, with `spare` of its time.
pub(crate) fn rebuild_ns((bytes, per_s): (u64, u64), jump_ns: u64, spare: f64) -> Option<u64> {
    let batches = real(bytes) / real(BATCH_BYTES);
    let each_ns = real(BATCH_BYTES) * 1e9 / real(per_s.max(1)) + 2.0 * real(jump_ns);
    (spare > 0.0).then(|| whole(batches * each_ns / spare))
}

/// The trace that a judged rate follows from.
fn trace_of(
    (target, laps): (&Target, &Laps<'_>),
    parts: &[PartResult],
    judged: &Judged,
) -> Option<Trace> {
    let part = parts.iter().find(|part| part.part() == judged.basis)?;
    match part {
        PartResult::Sweep(sweep) => Some(laps.lap(sweep, target.size_bytes, judged.order)),
        part => part.run().map(|fill| fill.trace.clone()),
    }
}

/// Rates by place: those of a sweep, or else of a fill in stretches.
pub(crate) fn places(parts: &[PartResult]) -> Option<Sweep> {
    let sweep = parts.iter().find_map(|part| match part {
        PartResult::Sweep(sweep) if !sweep.steps.is_empty() => Some(sweep.clone()),
        _ => None,
    });
    sweep.or_else(|| {
        parts.iter().find_map(|part| match part {
            PartResult::Fill(fill) if !fill.windows.is_empty() => Some(of_windows(fill)),
            PartResult::Passes(passes) if !passes.first.windows.is_empty() => {
                Some(of_windows(&passes.first))
            }
            _ => None,
        })
    })
}

fn of_windows(fill: &Fill) -> Sweep {
    let each = fill.windows.len().div_ceil(PLACES);
    let mut begin_ns = 0;
    let steps = fill.windows.chunks(each).filter_map(|windows| {
        let (first, last) = windows.first().zip(windows.last())?;
        let ns = last.end_ns.saturating_sub(begin_ns);
        begin_ns = last.end_ns;
        let bytes = windows.iter().map(|window| window.bytes).sum();
        Some(SweepStep { offset: first.offset_low, bytes, ns })
    });
    Sweep { is_write: true, block_bytes: fill.block_bytes, steps: steps.collect(), jump_ns: None }
}
