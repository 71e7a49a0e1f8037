//! Laps over a surface that are computed from rates at places.

use core::ops::Range;

use crate::fill::ring_order;
use crate::judged::{Jump, JumpBy, Order};
use crate::number::{real, whole};
use crate::plan::Plan;
use crate::report::{PartResult, Sweep, Target, TargetKind};
use crate::seen::missed_ns;
use crate::trace::Trace;

/// Steps of a lap that is computed from places.
const LAP_STEPS: u64 = 1 << 18;
/// A jump from zone to zone, where none was measured.
const JUMP_NS: u64 = 15_000_000;

/// The plan whose ring the rates of a target are computed for.
pub(crate) fn plan_of(target: &Target) -> Plan {
    match target.kind {
        TargetKind::Model => Plan::of_model(target.size_bytes),
        _ => Plan::full(target.size_bytes),
    }
}

/// What a jump of this very disk costs: as the part `extents` found it by writing, or else as reads
/// at random places took.
pub(crate) fn jump(parts: &[PartResult]) -> Jump {
    let by_writing = parts.iter().find_map(|part| match part {
        PartResult::Extents(extents) if extents.bytes_per_s > 0 => Some(extents.jump_ns),
        _ => None,
    });
    let by_reading = || {
        parts.iter().find_map(|part| match part {
            PartResult::Sweep(sweep) => sweep.jump_ns,
            PartResult::Reads(reads) => missed_ns(reads),
            _ => None,
        })
    };
    let of = |ns, by| Jump { ns, by };
    by_writing
        .map(|ns| of(ns, JumpBy::Extents))
        .or_else(|| by_reading().map(|ns| of(ns, JumpBy::Reads)))
        .unwrap_or(of(JUMP_NS, JumpBy::Assumed))
}

/// Bytes that a lap goes on by.
pub(crate) fn step_bytes(size: u64) -> u64 {
    (size / LAP_STEPS).max(1)
}

/// Laps that are computed from rates at places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laps<'a> {
    pub(crate) plan: &'a Plan,
    /// Of this disk.
    pub(crate) jump: Jump,
}

impl Laps<'_> {
    /// What a jump costs a disk that is written in this order. Where nothing turns and nothing was
    /// measured it costs nothing.
    pub(crate) fn jump_ns(&self, order: Order) -> u64 {
        let is_known = self.jump.by != JumpBy::Assumed || order == Order::ZoneLevelled;
        if is_known { self.jump.ns } else { 0 }
    }

    /// One lap over the first `size` bytes of the surface.
    pub(crate) fn lap(&self, sweep: &Sweep, size: u64, order: Order) -> Trace {
        let step_bytes = step_bytes(size);
        if order == Order::FirstToLast {
            return lap(sweep, core::iter::once(0..size), step_bytes, 0);
        }
        let Plan { extent_bytes, zones, .. } = *self.plan;
        let extents = ring_order(size, extent_bytes, zones).into_iter();
        lap(sweep, extents, step_bytes.min(extent_bytes), self.jump_ns(order))
    }
}

/// One lap over ranges of the surface at the rates of a sweep, with a jump to each but the first.
pub(crate) fn lap(
    sweep: &Sweep,
    ranges: impl Iterator<Item = Range<u64>>,
    step_bytes: u64,
    jump_ns: u64,
) -> Trace {
    let mut trace = Trace::default();
    let mut behind = 0;
    for range in ranges {
        let mut jump = if range.start == behind { 0 } else { jump_ns };
        let mut begin = range.start;
        while begin < range.end {
            let end = range.end.min(begin + step_bytes);
            let rate = sweep.rate_at(begin + (end - begin) / 2).max(1.0);
            trace.push(whole(real(end - begin) * 1e9 / rate) + jump, end - begin);
            (begin, jump) = (end, 0);
        }
        behind = range.end;
    }
    trace
}
