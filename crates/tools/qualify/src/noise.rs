//! How far two runs of the same may be apart by chance, as the stretches of both say.
//!
//! A surface that is slower farther in is so in both runs: what counts is how the ratios of the
//! same stretches scatter. Neighbours are alike, as what disturbs a disk lasts, and count as fewer
//! by their correlation. What changes from one run to the next and stays for all of it is in
//! neither report: that is what a tolerance is for. It is larger for what took a moment only, which
//! says less of the next moment.
//!
//! Of random writes and latencies there are no places. How they drift is seen between eighths of
//! the time, and what drifts within a run does so from one run to the next: eighths of a run that
//! are a tenth apart say no more of the next run than one of them.

use crate::number::{real, to_u64, to_usize};
use crate::plan::Part;
use crate::report::{Fill, PartResult, Qualification, Sweep, SweepStep, Window};

/// Standard deviations that hold 995 of 1000: about ten values of two reports are judged.
pub(crate) const DEVIATIONS: f64 = 2.81;
/// Stretches of the surface at which two runs are compared.
const STRETCHES: u64 = 64;
/// Stretches of which each has a slowest window.
const SLOWEST: u64 = 8;
/// What took as long is as good as the tolerance says.
const STEADY_NS: u64 = 10_000_000_000;
/// Fewer say nothing of how they scatter.
const RATIOS_MIN: usize = 6;

/// How far ratios of two runs may be from 1 by chance, as shares of 1; `None` where too few
/// stretches are known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Noise {
    /// Of the rates of both runs as a whole.
    pub(crate) mean: Option<f64>,
    /// Of the rates of their slowest stretches.
    pub(crate) slowest: Option<f64>,
    /// So many times the tolerance is what one run may be off another.
    pub(crate) shift: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self { mean: None, slowest: None, shift: 1.0 }
    }
}

impl Noise {
    /// Of one part of two reports.
    pub(crate) fn of(part: Part, old: &Qualification, new: &Qualification) -> Self {
        let [old, new] = [old, new].map(|it| it.parts.iter().find(|other| other.part() == part));
        match old.zip(new) {
            Some((PartResult::Sweep(old), PartResult::Sweep(new))) => {
                let logs = logs(&sweep_ratios(old, new));
                let shift = shift([old, new].map(Sweep::ns));
                Self { mean: of_mean(&logs), slowest: of_one(&logs), shift }
            }
            Some((PartResult::Passes(old), PartResult::Passes(new))) => {
                Self::of_fills(&old.first, &new.first)
            }
            Some(
                (PartResult::Fill(old), PartResult::Fill(new))
                | (PartResult::Ring(old), PartResult::Ring(new)),
            ) => Self::of_fills(old, new),
            _ => Self::default(),
        }
    }

    fn of_fills(old: &Fill, new: &Fill) -> Self {
        let slowest = ratios(&slowest(old), &slowest(new));
        Self {
            mean: of_mean(&logs(&fill_ratios(old, new))),
            slowest: of_one(&logs(&slowest)),
            shift: shift([old, new].map(Fill::ns)),
        }
    }
}

/// Deviations that are known from sixteen values are so much wider (Student's t for 99.5 %).
const FEW: f64 = 1.2;

/// How far values of two runs may be apart by chance, of which each is known in parts of its time;
/// as a share of 1. `None` where too few parts are known.
pub(crate) fn drift(old: &[f64], new: &[f64]) -> Option<f64> {
    let variance = |values: &[f64]| Some(deviation(&logs(values))?.powi(2));
    let deviation = (variance(old)? + variance(new)?).sqrt();
    Some((deviation * DEVIATIONS * FEW).exp() - 1.0)
}

/// The same as [`shift`], of what may have no time: that has none to say less of.
pub(crate) fn shift_of_timed(ns: [u64; 2]) -> f64 {
    if ns.contains(&0) { 1.0 } else { shift(ns) }
}

/// How much more than the tolerance runs that took so long may be apart.
pub(crate) fn shift(ns: [u64; 2]) -> f64 {
    let [old, new] = ns.map(|ns| real(STEADY_NS) / real(ns.max(1)));
    old.max(new).sqrt().max(1.0)
}

/// Ratios of the mean rates of stretches that follow one another in the order of writing.
pub(crate) fn fill_ratios(old: &Fill, new: &Fill) -> Vec<f64> {
    let rates = |fill: &Fill| {
        let sum = |windows: &[(u64, u64)]| {
            let bytes: u64 = windows.iter().map(|(bytes, _)| bytes).sum();
            let ns: u64 = windows.iter().map(|(_, ns)| ns).sum();
            (bytes > 0 && ns > 0).then(|| real(bytes) / real(ns))
        };
        stretches(fill, STRETCHES).iter().map(|windows| sum(windows)).collect::<Vec<_>>()
    };
    ratios(&rates(old), &rates(new))
}

/// Ratios of rates at the places that both sweeps have.
pub(crate) fn sweep_ratios(old: &Sweep, new: &Sweep) -> Vec<f64> {
    let same =
        |step: &SweepStep| new.steps.iter().find(|other| other.offset == step.offset).copied();
    let pairs = old.steps.iter().filter_map(|step| Some((step.rate(), same(step)?.rate())));
    pairs.filter(|(old, _)| *old > 0).map(|(old, new)| real(new) / real(old)).collect()
}

/// For how many independent values these count: neighbours are alike.
pub(crate) fn counted(values: &[f64]) -> f64 {
    let alike = neighbours(values).clamp(0.0, 0.9);
    real(to_u64(values.len())) * (1.0 - alike) / (1.0 + alike)
}

/// Logarithms, of those that have one.
pub(crate) fn logs(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| ratio.ln()).filter(|log| log.is_finite()).collect()
}

/// Rates of the slowest windows of a few stretches.
fn slowest(fill: &Fill) -> Vec<Option<f64>> {
    let slowest = |windows: &[(u64, u64)]| {
        let known = windows.iter().filter(|(bytes, ns)| *bytes > 0 && *ns > 0);
        known.map(|(bytes, ns)| real(*bytes) / real(*ns)).min_by(f64::total_cmp)
    };
    stretches(fill, SLOWEST).iter().map(|windows| slowest(windows)).collect()
}

/// Bytes and times of the windows of each stretch.
fn stretches(fill: &Fill, count: u64) -> Vec<Vec<(u64, u64)>> {
    let mut found = vec![Vec::new(); to_usize(count)];
    let (total, mut begin_ns, mut written) = (fill.bytes().max(1), 0, 0);
    for &Window { end_ns, bytes, .. } in &fill.windows {
        let at = u128::from(written) * u128::from(count) / u128::from(total);
        if let Some(windows) = usize::try_from(at).ok().and_then(|at| found.get_mut(at)) {
            windows.push((bytes, end_ns.saturating_sub(begin_ns)));
        }
        (begin_ns, written) = (end_ns, written + bytes);
    }
    found
}

fn ratios(old: &[Option<f64>], new: &[Option<f64>]) -> Vec<f64> {
    old.iter().zip(new).filter_map(|(old, new)| Some((*new)? / (*old)?)).collect()
}

/// Of a mean of values that scatter as these do.
fn of_mean(logs: &[f64]) -> Option<f64> {
    let each = deviation(logs)? / counted(logs).max(1.0).sqrt();
    Some((each * DEVIATIONS).exp() - 1.0)
}

/// Of one such value.
fn of_one(logs: &[f64]) -> Option<f64> {
    Some((deviation(logs)? * DEVIATIONS).exp() - 1.0)
}

fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < RATIOS_MIN {
        return None;
    }
    let count = real(to_u64(values.len()));
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt())
}

/// Correlation of each value with the next one.
fn neighbours(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / real(to_u64(values.len().max(1)));
    let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(values.iter().skip(1));
    let both: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
    if spread > 0.0 { both / spread } else { 0.0 }
}
