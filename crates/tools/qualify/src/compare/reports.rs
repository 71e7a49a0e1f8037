//! Reports compared: two machines, a host and its guest, before and after.
//!
//! A report has no rounds. Its fill and its sweep are compared place by place: cells of the surface
//! are the pairs. What differs everywhere by the same ratio is kept apart from what differs here
//! and there.

use super::{Comparison, Contender, EffectFound, Measure, judge};
use crate::number::{rate, real};
use crate::report::{Fill, PartResult, Qualification, Sweep};

/// Cells of a surface.
const CELLS: u64 = 24;

/// Reports, each with its name, against the first of them.
pub fn compare_reports(reports: &[(String, Qualification)]) -> Comparison {
    let of = |name: &String, report: &Qualification| {
        let judged = report.verdict.as_ref().and_then(|verdict| verdict.judged.first());
        Contender {
            name: name.clone(),
            bytes_per_s: judged.map_or(0, |judged| judged.mean_bytes_per_s),
            low_bytes_per_s: judged.map_or(0, |judged| judged.minimum_bytes_per_s),
            high_bytes_per_s: fastest(report).unwrap_or(0),
            guaranteed_bytes_per_s: judged.map_or(0, |judged| judged.guaranteed_bytes_per_s),
            ..Contender::default()
        }
    };
    let targets = reports.iter().map(|(name, report)| of(name, report)).collect();
    let mut effects = Vec::new();
    if let Some(((_, first), others)) = reports.split_first() {
        for ((_, other), at) in others.iter().zip(1..) {
            effects.extend(of_pair(first, other, at));
        }
    }
    let is_write = reports.iter().all(|(_, report)| fill(report).is_some());
    Comparison { is_write, targets, effects, is_interrupted: false }
}

fn of_pair(first: &Qualification, other: &Qualification, at: u32) -> Vec<EffectFound> {
    let fills = fill(first).zip(fill(other)).map(|(a, b)| (Measure::Rate, cells(a), cells(b)));
    let sweeps = sweep(first).zip(sweep(other));
    let sweeps = sweeps.map(|(a, b)| (Measure::Sweep, steps(a), steps(b)));
    let pairs = fills.into_iter().chain(sweeps);
    let effects = pairs.filter_map(|(measure, a, b)| {
        let pairs: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
        judge::effect(at, measure, &pairs)
    });
    effects.collect()
}

fn fill(report: &Qualification) -> Option<&Fill> {
    report.parts.iter().find_map(|part| match part {
        PartResult::Fill(fill) => Some(fill),
        PartResult::Passes(passes) => Some(&passes.first),
        _ => None,
    })
}

fn sweep(report: &Qualification) -> Option<&Sweep> {
    report.parts.iter().find_map(|part| match part {
        PartResult::Sweep(sweep) => Some(sweep),
        _ => None,
    })
}

fn fastest(report: &Qualification) -> Option<u64> {
    fill(report)?.rates().max()
}

/// Rates of equal shares of the bytes.
fn cells(fill: &Fill) -> Vec<f64> {
    let each = (fill.bytes() / CELLS).max(1);
    let (mut cells, mut bytes, mut begin_ns) = (Vec::new(), 0, 0);
    for window in &fill.windows {
        bytes += window.bytes;
        if bytes >= each {
            cells.push(real(rate(bytes, window.end_ns - begin_ns)));
            (bytes, begin_ns) = (0, window.end_ns);
        }
    }
    cells
}

fn steps(sweep: &Sweep) -> Vec<f64> {
    sweep.steps.iter().map(|step| real(step.rate())).collect()
}
