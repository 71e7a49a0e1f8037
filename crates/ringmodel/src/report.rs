//! The campaign over all variants, as text.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::campaign;
use crate::model::{Geometry, ROWS, Scenario, Stats};
use crate::mutants::{Entry, HARMLESS, MUTANTS, Mutant};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Runs of the correct variant for each geometry and scenario; the most for each mutant.
    pub(crate) runs: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) geometry: Option<Geometry>,
    /// Part of the names of the variants to run; empty for all.
    pub(crate) only: String,
    /// Mutants run to the end, from seed 0, and their failures are counted.
    pub(crate) survey: bool,
}

const fn geometry(data: usize, parity: usize, slots: usize, window: usize) -> Geometry {
    Geometry { data, parity, slots, rows: ROWS, window }
}

pub(crate) const CORRECT: &[Geometry] = &[
    geometry(1, 0, 24, 3),
    geometry(1, 0, 64, 5),
    geometry(1, 1, 24, 2),
    geometry(1, 2, 24, 3),
    geometry(2, 0, 24, 3),
    geometry(2, 1, 24, 3),
    geometry(2, 2, 24, 3),
    geometry(4, 0, 24, 3),
    geometry(4, 1, 24, 3),
    geometry(3, 2, 40, 3),
    geometry(4, 2, 32, 4),
];

pub(crate) fn usage(what: &str) -> ExitCode {
    let usage = "usage: ringmodel [--runs N] [--seed S] [--geometry K,P,SLOTS,W] [--only NAME] \
                 [--survey]";
    match writeln!(io::stderr(), "{what}\n{usage}") {
        Ok(()) | Err(_) => ExitCode::from(2),
    }
}

pub(crate) fn run(plan: &Plan, out: &mut impl Write) -> ExitCode {
    match report(plan, out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(_) => ExitCode::from(3),
    }
}

fn report(plan: &Plan, out: &mut impl Write) -> io::Result<bool> {
    if plan.survey {
        survey(plan, out)?;
        return Ok(true);
    }
    let mut good = true;
    let chosen = plan.geometry.as_ref().map_or(CORRECT, std::slice::from_ref);
    for geometry in chosen.iter().filter(|_| "correct".contains(&plan.only)) {
        for scenario in geometry.scenarios() {
            good &= correct(plan, geometry, scenario, out)?;
        }
    }
    if plan.geometry.is_some() || plan.seed.is_some() {
        return Ok(good);
    }
    for entry in MUTANTS.iter().filter(|entry| entry.name.contains(&plan.only)) {
        if let Some((stats, seed, what)) = catch(entry, plan.runs) {
            let Stats { runs, crashes, .. } = stats;
            let name = entry.name;
            writeln!(
                out,
                "caught    {name:<52} runs {runs:>5} crashes {crashes:>6}  seed {seed}: {what:.90}"
            )?;
        } else {
            good = false;
            writeln!(out, "SURVIVED  {:<52} runs {:>5}", entry.name, plan.runs)?;
        }
    }
    for entry in HARMLESS.iter().filter(|entry| entry.name.contains(&plan.only)) {
        let fails = u32::from(catch(entry, plan.runs).is_some());
        writeln!(out, "harmless  {:<52} runs {:>5} FAILS {fails}", entry.name, plan.runs)?;
    }
    Ok(good)
}

fn correct(
    plan: &Plan,
    geometry: &Geometry,
    scenario: Scenario,
    out: &mut impl Write,
) -> io::Result<bool> {
    let mut stats = Stats::default();
    let (mut fails, mut first) = (0, String::new());
    let seeds = plan.seed.map_or(0..plan.runs, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(what) = campaign::run(seed, geometry, (scenario, Mutant::None), &mut stats) {
            fails += 1;
            if first.is_empty() {
                first = format!("\n    seed {seed}: {what}");
            }
        }
    }
    let Geometry { data, parity, slots, window, .. } = geometry;
    writeln!(
        out,
        "correct   {data}+{parity} slots {slots} W {window} {scenario:?}: \
         FAILS {fails} | {stats}{first}"
    )?;
    Ok(fails == 0)
}

/// How many runs of each mutant fail.
fn survey(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let entries = MUTANTS.iter().chain(HARMLESS);
    for entry in entries.filter(|entry| entry.name.contains(&plan.only)) {
        let mut stats = Stats::default();
        let variant = (entry.scenario, entry.mutant);
        let failed: Vec<u64> = (0..plan.runs)
            .filter(|&seed| campaign::run(seed, &entry.geometry(), variant, &mut stats).is_err())
            .collect();
        let (name, first, (k, p, ..)) = (entry.name, failed.first(), entry.geometry);
        writeln!(
            out,
            "{:>6} of {} runs fail  {name:<56} {k}+{p} {:?} first {first:?}",
            failed.len(),
            plan.runs,
            entry.scenario
        )?;
    }
    Ok(())
}

impl Entry {
    fn geometry(&self) -> Geometry {
        let (data, parity, slots, window) = self.geometry;
        geometry(data, parity, slots, window)
    }
}

/// Runs a mutant until a promise breaks: the cost, the seed and the promise.
pub(crate) fn catch(entry: &Entry, runs: u64) -> Option<(Stats, u64, String)> {
    let mut stats = Stats::default();
    let geometry = entry.geometry();
    (entry.seed..entry.seed + runs).find_map(|seed| {
        let variant = (entry.scenario, entry.mutant);
        let what = campaign::run(seed, &geometry, variant, &mut stats).err()?;
        Some((stats, seed, what))
    })
}
