//! Two qualifications side by side: what changed, and what is noise.
//!
//! A rate of a whole run changed when it differs by more than the tolerance, and by more than it
//! may by chance, as the stretches of both runs say ([`crate::noise`]). Of rates by place there are
//! many: their ratios have a median, and order statistics that contain it 995 times of 1000; it
//! changed when these leave 1 out and the median is off by more than a quarter of the tolerance. A
//! percentile lies between two ranks in the same sense; it changed when the ranges of both do not
//! touch and it differs by more than twice the tolerance, and than it drifts within a run.
//!
//! Where others had a part in what one of the runs measured ([`Meanwhile`]), no difference
//! is one of the target, and none is hidden by noise: whether there is one cannot be told.

use crate::judged::{Judged, Order};
use crate::noise::{
    DEVIATIONS, Noise, counted, drift, fill_ratios, shift, shift_of_timed, sweep_ratios,
};
use crate::number::{real, to_u64, to_usize, whole};
use crate::plan::Part;
use crate::report::{
    Cpu, CpuStep, Files, Fill, Iops, Mixed, PartResult, Qualification, Reads, Sweep, Target,
    TargetKind,
};
use vitals::Latencies;
use vitals::{Disturbance, Meanwhile};
use vitals::{Eighth, SHARES};

/// A jump of less is not seen beside the transfer: noise of the fit.
const JUMP_SEEN_NS: u64 = 1_000_000;
/// Fewer than this say nothing of a median.
const RATIOS_MIN: usize = 10;
/// A guarantee below the mean rate by more than so many thousandths rests on slow stretches.
const STALLED_PERMILLE: u64 = 10;
/// A percentile of few latencies, of which no drift is known, may be off by this factor besides.
const TAIL: f64 = 2.0;
/// From this share on, in millionths.
const TAIL_SHARE: u32 = 990_000;

/// What changed from one qualification to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diff {
    /// In thousandths: rates that differ by less are the same.
    pub tolerance_permille: u64,
    /// Facts of target and question that differ: name, old, new.
    pub facts: Vec<(&'static str, String, String)>,
    /// What disturbed the old and the new measurement.
    pub disturbed: [Vec<Disturbance>; 2],
    /// What both have measured.
    pub compared: Vec<Compared>,
    /// What only one of them has, and so was not compared.
    pub unmatched: Vec<String>,
}

/// A value that two reports have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The guaranteed rate of an order.
    Guaranteed(Part, Order),
    /// Mean rate of a part, in an order of writing.
    Mean(Part, Order),
    /// The rate of its slowest stretch.
    Slowest(Part, Order),
    /// Rates at the same places, as the median of their ratios.
    ByPlace(Part),
    /// Time that a jump costs.
    Jump,
    /// A percentile of writes, from arrival: millionths.
    WriteLatency(u32),
    /// A percentile of random reads.
    ReadLatency(u32),
    /// What is guaranteed beside readers.
    BesideReaders,
    /// Random writes a second with so many under way.
    Iops(u32),
    /// The rate of the last lap of a directory's files.
    LastLap,
    /// Processor time for a gigabyte with so many columns of parity.
    Cpu(u32),
}

/// How a value stands to the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Within the noise.
    Same,
    /// Better: a higher rate, a shorter time.
    Better,
    /// The new value is worse.
    Worse,
    /// They differ by more than the tolerance, and others had a part in one of them.
    Unclear,
}

/// A value of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    /// What it is of.
    pub subject: Subject,
    /// Bytes or writes a second, or nanoseconds.
    pub old: u64,
    /// The value in the later report.
    pub new: u64,
    /// New over old, in thousandths.
    pub ratio_permille: u64,
    /// Bounds that contain the ratio 995 times of 1000, where the values say that.
    pub interval_permille: Option<(u64, u64)>,
    /// What to make of it.
    pub change: Change,
}

impl Diff {
    /// Compares; `tolerance_permille` is what a rate may differ by.
    pub fn of(old: &Qualification, new: &Qualification, tolerance_permille: u64) -> Self {
        let mut diff = Self {
            tolerance_permille,
            facts: facts(old, new),
            disturbed: [old, new].map(disturbances),
            compared: Vec::new(),
            unmatched: Vec::new(),
        };
        diff.judged(old, new);
        for part in &old.parts {
            match new.parts.iter().find(|other| other.part() == part.part()) {
                Some(other) => diff.part(part, other),
                None => diff.unmatched.push(format!("{} is only in the old one", part.part())),
            }
        }
        for part in &new.parts {
            if !old.parts.iter().any(|other| other.part() == part.part()) {
                diff.unmatched.push(format!("{} is only in the new one", part.part()));
            }
        }
        diff
    }

    /// Whether the guarantee that the old verdict stood on is less; `None` where it could not be
    /// compared.
    pub fn has_fallen(&self) -> Option<bool> {
        let guaranteed = |compared: &&Compared| matches!(compared.subject, Subject::Guaranteed(..));
        let first = self.compared.iter().find(guaranteed)?;
        (first.change != Change::Unclear).then_some(first.change == Change::Worse)
    }

    fn judged(&mut self, old: &Qualification, new: &Qualification) {
        let of = |found: &Qualification| {
            found.verdict.as_ref().map_or(Vec::new(), |verdict| verdict.judged.clone())
        };
        let others = of(new);
        let key = |judged: &Judged| (judged.basis, judged.order, judged.is_by_reading);
        for judged in of(old) {
            let Some(other) = others.iter().find(|other| key(other) == key(&judged)) else {
                continue;
            };
            let (basis, order) = (judged.basis, judged.order);
            let noise = Noise::of(basis, old, new);
            if judged.pool_bytes == other.pool_bytes {
                let rates = (judged.guaranteed_bytes_per_s, other.guaranteed_bytes_per_s);
                let is_stalled = is_stalled(&judged) || is_stalled(other);
                let share = if is_stalled { noise.slowest } else { noise.mean };
                self.noisy_rate(Subject::Guaranteed(basis, order), rates, (share, noise.shift));
            } else {
                self.unmatched.push(format!("guarantee of {basis}: judged with different pools"));
            }
            let means = (judged.mean_bytes_per_s, other.mean_bytes_per_s);
            self.noisy_rate(Subject::Mean(basis, order), means, (noise.mean, noise.shift));
            let slowest = (judged.minimum_bytes_per_s, other.minimum_bytes_per_s);
            let may_be_off = (noise.slowest, noise.shift);
            self.noisy_rate(Subject::Slowest(basis, order), slowest, may_be_off);
        }
    }

    fn part(&mut self, old: &PartResult, new: &PartResult) {
        match (old, new) {
            (PartResult::Sweep(old), PartResult::Sweep(new)) => {
                let ratios = sweep_ratios(old, new);
                let (mean, ns) = (mean_of_sweep(old), [old, new].map(Sweep::ns));
                self.by_place(Part::Sweep, (mean, shift(ns)), ratios);
            }
            (PartResult::Fill(old), PartResult::Fill(new)) => self.fills(Part::Fill, old, new),
            (PartResult::Ring(old), PartResult::Ring(new)) => self.fills(Part::Ring, old, new),
            (PartResult::Passes(old), PartResult::Passes(new)) => {
                self.fills(Part::Passes, &old.first, &new.first);
            }
            // A fit of few sizes: it is known to a quarter, and what costs nothing that can be seen
            // is no figure to compare.
            (PartResult::Extents(old), PartResult::Extents(new))
                if old.jump_ns.max(new.jump_ns) >= JUMP_SEEN_NS =>
            {
                self.time(Subject::Jump, (old.jump_ns, new.jump_ns), 250);
            }
            (PartResult::Latency(old), PartResult::Latency(new))
                if old.offered_bytes_per_s == new.offered_bytes_per_s =>
            {
                let [old, new] = [old, new].map(|it| (&it.from_arrival, &*it.eighths, it.ns));
                self.percentiles(Subject::WriteLatency, old, new);
            }
            (PartResult::Latency(_), PartResult::Latency(_)) => {
                self.unmatched.push("latency: other rates were offered".to_owned());
            }
            (PartResult::Reads(old), PartResult::Reads(new)) => {
                self.percentiles(Subject::ReadLatency, timed(old), timed(new));
            }
            (PartResult::Mixed(old), PartResult::Mixed(new)) if is_same_load(old, new) => {
                let rates = (old.beside_bytes_per_s, new.beside_bytes_per_s);
                let shift = shift_of_timed([old.beside.ns(), new.beside.ns()]);
                self.noisy_rate(Subject::BesideReaders, rates, (None, shift));
            }
            (PartResult::Mixed(_), PartResult::Mixed(_)) => {
                self.unmatched.push("mixed: readers asked for something else".to_owned());
            }
            (PartResult::Iops(old), PartResult::Iops(new)) => self.iops(old, new),
            (PartResult::Files(old), PartResult::Files(new)) => self.files(old, new),
            (PartResult::Cpu(old), PartResult::Cpu(new)) => self.cpu(old, new),
            _ => {}
        }
    }

    fn iops(&mut self, old: &Iops, new: &Iops) {
        for step in &old.steps {
            if let Some(other) = new.steps.iter().find(|other| other.depth == step.depth) {
                let rates = (step.writes_per_s(), other.writes_per_s());
                let noise = drift(&all_real(&step.eighths), &all_real(&other.eighths));
                // A drift that is known needs no guess of it.
                let shift = noise.map_or_else(|| shift_of_timed([step.ns, other.ns]), |_| 1.0);
                let may_be_off = (noise, shift);
                self.noisy_rate(Subject::Iops(step.depth), rates, may_be_off);
            }
        }
    }

    /// A directory ages: laps of the same number are alike.
    fn files(&mut self, old: &Files, new: &Files) {
        let is_same = old.file_bytes == new.file_bytes && old.laps.len() == new.laps.len();
        match old.laps.last().zip(new.laps.last()).filter(|_| is_same) {
            Some((old, new)) => {
                let rates = (old.rate(), new.rate());
                let shift = shift_of_timed([old.ns, new.ns]);
                self.noisy_rate(Subject::LastLap, rates, (None, shift));
            }
            None => self.unmatched.push("files: other files, or another number of laps".to_owned()),
        }
    }

    fn cpu(&mut self, old: &Cpu, new: &Cpu) {
        for step in &old.steps {
            let columns = |step: &CpuStep| (step.data_columns, step.parity_columns);
            if let Some(other) = new.steps.iter().find(|other| columns(other) == columns(step)) {
                let times = (step.ns_per_gb(), other.ns_per_gb());
                // A processor's clock goes up and down by more than a disk's rate.
                self.time(Subject::Cpu(step.parity_columns), times, 2 * self.tolerance_permille);
            }
        }
    }

    fn fills(&mut self, part: Part, old: &Fill, new: &Fill) {
        let ns = [old.ns(), new.ns()];
        self.by_place(part, (old.rate(), shift(ns)), fill_ratios(old, new));
    }

    /// The rate now is what the change at the same places makes of the one before: the mean of all
    /// places would be another one.
    fn by_place(&mut self, part: Part, (old, shift): (u64, f64), mut ratios: Vec<f64>) {
        if ratios.len() < RATIOS_MIN {
            return;
        }
        let Some((low, median, high)) = median_between(&mut ratios) else { return };
        let is_off = (median - 1.0).abs() * 4000.0 > shift * real(self.tolerance_permille);
        let change = match (is_off, low > 1.0, high < 1.0) {
            (true, true, _) => Change::Better,
            (true, _, true) => Change::Worse,
            _ => Change::Same,
        };
        let (between, new) = (Some((low, high)), whole(real(old) * median));
        self.add((Subject::ByPlace(part), old, new), (median, between), change);
    }

    /// A rate that may be off by chance by this share, and by so many times the tolerance from one
    /// run to the next.
    fn noisy_rate(
        &mut self,
        subject: Subject,
        (old, new): (u64, u64),
        (noise, shift): (Option<f64>, f64),
    ) {
        let off = 1.0 + shift * real(self.tolerance_permille) / 1000.0;
        let off = off * (1.0 + noise.unwrap_or(0.0)) - 1.0;
        let change = match beyond(old, new, permille(off)) {
            None => Change::Same,
            Some(true) => Change::Better,
            Some(false) => Change::Worse,
        };
        let ratio = ratio(old, new);
        let between = noise.map(|noise| (ratio / (1.0 + noise), ratio * (1.0 + noise)));
        self.add((subject, old, new), (ratio, between), change);
    }

    fn time(&mut self, subject: Subject, (old, new): (u64, u64), tolerance_permille: u64) {
        let change = match beyond(old, new, tolerance_permille) {
            None => Change::Same,
            Some(true) => Change::Worse,
            Some(false) => Change::Better,
        };
        self.add((subject, old, new), (ratio(old, new), None), change);
    }

    /// A value of both, and the ratio of the new to the old one with its bounds.
    fn add(
        &mut self,
        (subject, old, new): (Subject, u64, u64),
        (ratio, between): (f64, Option<(f64, f64)>),
        change: Change,
    ) {
        // Of what is off, also by chance, nobody can say that it is the same.
        let is_disturbed = self.disturbed.iter().any(|found| !found.is_empty());
        let is_off = beyond(1000, permille(ratio), self.tolerance_permille).is_some();
        let change = if is_disturbed && is_off { Change::Unclear } else { change };
        self.compared.push(Compared {
            subject,
            old,
            new,
            ratio_permille: permille(ratio),
            interval_permille: between.map(|(low, high)| (permille(low), permille(high))),
            change,
        });
    }

    /// Percentiles of both: of all latencies, in parts of the time, and that time.
    fn percentiles(&mut self, subject: fn(u32) -> Subject, old: Timed<'_>, new: Timed<'_>) {
        let shift = shift_of_timed([old.2, new.2]);
        for share in SHARES {
            let (Some(before), Some(after)) = (old.0.quantile_ns(share), new.0.quantile_ns(share))
            else {
                continue;
            };
            let (old_range, new_range) = (range(old.0, share), range(new.0, share));
            let are_apart = old_range.1 < new_range.0 || new_range.1 < old_range.0;
            let parts = |it: Timed<'_>| -> Vec<f64> {
                it.1.iter().filter_map(|eighth| eighth.quantile_ns(share)).map(real).collect()
            };
            let noise = drift(&parts(old), &parts(new));
            let unknown = if share >= TAIL_SHARE { TAIL } else { 1.0 };
            let by_chance = noise.map_or(unknown, |noise| 1.0 + noise);
            let shift = if noise.is_some() { 1.0 } else { shift };
            let off = (1.0 + 2.0 * shift * real(self.tolerance_permille) / 1000.0) * by_chance;
            let change = match beyond(before, after, permille(off - 1.0)).filter(|_| are_apart) {
                None => Change::Same,
                Some(true) => Change::Worse,
                Some(false) => Change::Better,
            };
            let ratio = ratio(before, after);
            let between = noise.map(|noise| (ratio / (1.0 + noise), ratio * (1.0 + noise)));
            self.add((subject(share), before, after), (ratio, between), change);
        }
    }
}

/// Latencies, their percentiles in parts of the time, and the time.
type Timed<'a> = (&'a Latencies, &'a [Eighth], u64);

/// Of reads, of which one is under way at a time.
fn timed(reads: &Reads) -> Timed<'_> {
    let ns = reads.latency.mean_ns().saturating_mul(reads.latency.count());
    (&reads.latency, &reads.eighths, ns)
}

fn disturbances(found: &Qualification) -> Vec<Disturbance> {
    found.meanwhile.as_ref().map_or_else(Vec::new, Meanwhile::disturbances)
}

fn all_real(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|count| real(*count)).collect()
}

/// Whether the guarantee rests on slow stretches rather than on the rate of the whole.
fn is_stalled(judged: &Judged) -> bool {
    let mean = u128::from(judged.mean_bytes_per_s) * u128::from(1000 - STALLED_PERMILLE);
    u128::from(judged.guaranteed_bytes_per_s) * 1000 < mean
}

fn is_same_load(old: &Mixed, new: &Mixed) -> bool {
    old.load == new.load && old.pool_bytes == new.pool_bytes
}

fn ratio(old: u64, new: u64) -> f64 {
    real(new) / real(old.max(1))
}

fn permille(ratio: f64) -> u64 {
    whole(ratio * 1000.0)
}

/// Whether `new` is more (true) or less (false) by more than a tolerance in thousandths.
fn beyond(old: u64, new: u64, tolerance_permille: u64) -> Option<bool> {
    let (old, new) = (u128::from(old), u128::from(new));
    let more = 1000 + u128::from(tolerance_permille);
    if new * 1000 > old * more {
        Some(true)
    } else if new * more < old * 1000 {
        Some(false)
    } else {
        None
    }
}

/// A file of our own has another name each time: of it the folder counts.
fn path_of(target: &Target) -> String {
    match (target.kind, target.path.rsplit_once('/')) {
        (TargetKind::OwnFile, Some((folder, _))) => folder.to_owned(),
        _ => target.path.clone(),
    }
}

/// What was looked at, and what was asked.
fn facts(old: &Qualification, new: &Qualification) -> Vec<(&'static str, String, String)> {
    let of = |found: &Qualification| {
        let layer = found.target.layers.first();
        let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "?".to_owned());
        let mix = found.verdict.as_ref().map(|verdict| &verdict.mix.name);
        let pool = found.verdict.as_ref().map_or(0, |verdict| verdict.pool_bytes);
        [
            ("path", path_of(&found.target)),
            ("bytes", found.target.size_bytes.to_string()),
            ("model", known(layer.and_then(|layer| layer.model.as_ref()))),
            ("serial", known(layer.and_then(|layer| layer.serial.as_ref()))),
            ("firmware", known(layer.and_then(|layer| layer.firmware.as_ref()))),
            ("write cache", known(layer.and_then(|layer| layer.write_cache.as_ref()))),
            ("scheduler", known(layer.and_then(|layer| layer.scheduler.as_ref()))),
            ("pool bytes", pool.to_string()),
            ("mix", known(mix)),
        ]
    };
    let pairs = of(old).into_iter().zip(of(new));
    let differ = pairs.filter(|((_, old), (_, new))| old != new);
    differ.map(|((name, old), (_, new))| (name, old, new)).collect()
}

fn mean_of_sweep(sweep: &Sweep) -> u64 {
    crate::number::rate(sweep.steps.iter().map(|step| step.bytes).sum(), sweep.ns())
}

/// The median and the order statistics that contain it 995 times of 1000.
fn median_between(ratios: &mut [f64]) -> Option<(f64, f64, f64)> {
    let n = real(to_u64(ratios.len()));
    let counted = counted(ratios);
    ratios.sort_by(f64::total_cmp);
    // Half the width in ranks, of n values that are worth fewer.
    let half = DEVIATIONS / 2.0 * n / counted.max(1.0).sqrt();
    let last = n - 1.0;
    let at = |rank: f64| ratios.get(to_usize(whole(rank.clamp(0.0, last)))).copied();
    let middle = last / 2.0;
    let median = f64::midpoint(at(middle.floor())?, at(middle.ceil())?);
    Some((at((middle - half).floor())?, median, at((middle + half).ceil())?))
}

/// Between which latencies a percentile lies 995 times of 1000, by the ranks it may have.
fn range(latencies: &Latencies, share: u32) -> (u64, u64) {
    let (n, p) = (real(latencies.count()), f64::from(share) / 1e6);
    let off = DEVIATIONS * (p * (1.0 - p) / n.max(1.0)).sqrt() * 1e6;
    let off = u32::try_from(whole(off.ceil())).unwrap_or(u32::MAX);
    let low = latencies.quantile_ns(share.saturating_sub(off)).unwrap_or(latencies.min_ns());
    let high = latencies.quantile_ns(share.saturating_add(off).min(1_000_000));
    (low, high.unwrap_or(latencies.max_ns()))
}

#[cfg(test)]
mod tests;
