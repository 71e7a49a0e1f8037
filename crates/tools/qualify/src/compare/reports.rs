//! Reports compared: two machines, a host and its guest, before and after.
//!
//! A report has no rounds. Its fill and its sweep are compared place by place: stretches of the
//! surface are the pairs, of which neighbours that are alike count as one. What changes from one
//! run to the next is in no report: a difference has to be larger.

use super::{Comparison, Contender, EffectFound, Measure, judge};
use crate::noise::{counted, fill_ratios, logs, shift, sweep_ratios};
use crate::number::{real, to_u64, to_usize, whole};
use crate::report::{Fill, PartResult, Qualification, Sweep};

/// Two runs of the same may differ by this share.
const BETWEEN_RUNS: f64 = 0.05;

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
    let fills = fill(first)
        .zip(fill(other))
        .map(|(a, b)| (Measure::Rate, fill_ratios(a, b), shift([a, b].map(Fill::ns))));
    let sweeps = sweep(first)
        .zip(sweep(other))
        .map(|(a, b)| (Measure::Sweep, sweep_ratios(a, b), shift([a, b].map(Sweep::ns))));
    let is_disturbed = [first, other].iter().any(|report| {
        report.meanwhile.as_ref().is_some_and(|meanwhile| !meanwhile.disturbances().is_empty())
    });
    let effects = fills.into_iter().chain(sweeps).filter_map(|(measure, ratios, shift)| {
        let found = of_places(at, measure, &logs(&ratios))?;
        let off = 1.0 + BETWEEN_RUNS * shift;
        let is_off = real(found.low) > 1000.0 * off || real(found.high) * off < 1000.0;
        // What others had a part in says nothing of the target.
        Some(EffectFound { differs: found.differs && is_off && !is_disturbed, ..found })
    });
    effects.collect()
}

/// What logarithms of ratios at places that follow one another say.
fn of_places(at: u32, measure: Measure, logs: &[f64]) -> Option<EffectFound> {
    let groups = to_usize(whole(counted(logs).floor()).max(1));
    let of_group = |group: &[f64]| {
        let mean = group.iter().sum::<f64>() / real(to_u64(group.len()));
        (1.0, mean.exp())
    };
    let pairs: Vec<(f64, f64)> =
        logs.chunks(logs.len().div_ceil(groups).max(1)).map(of_group).collect();
    judge::effect(at, measure, &pairs)
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
