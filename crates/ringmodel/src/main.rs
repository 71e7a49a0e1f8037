//! Model check of the ring's recovery: crashes and faults against the mount, one mutant per rule.
//!
//! It models what `volume` does on members: short stripes, slots closed early, superblock copies,
//! the watermark, the mount, and members that fail, leave, return, are replaced, resilvered beside
//! the writer, and added. Time, bytes and threads are left out. `assemble`, `read`, `search`,
//! `mount`, `epoch` and `resilver` hold the rules with their reasons; `checker` holds the
//! promises; each of `mutants` leaves out one rule and must break a promise. A failing seed and
//! geometry are a whole bug report.
//!
//! `ringmodel [--runs N] [--seed S] [--geometry K,P,SLOTS,W] [--only NAME] [--survey]`: with a
//! seed or a geometry the correct variant with that one alone; NAME is part of a variant's name;
//! a survey counts the failing runs of each mutant. Exit code 1: the correct variant failed or a
//! mutant lived.

#![expect(
    clippy::indexing_slicing,
    reason = "a model: an index out of bounds is a failed run, which is what it looks for"
)]

mod assemble;
mod campaign;
mod checker;
mod device;
mod epoch;
mod members;
mod model;
mod mount;
mod mutants;
mod read;
mod report;
mod resilver;
mod rng;
mod search;
mod superblock;
mod writer;

use std::process::ExitCode;

use model::Geometry;
use report::Plan;

fn main() -> ExitCode {
    let plan = match plan(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(what) => return report::usage(&what),
    };
    report::run(&plan, &mut std::io::stdout().lock())
}

fn plan(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan =
        Plan { runs: 80, seed: None, geometry: None, only: String::new(), survey: false };
    while let Some(name) = args.next() {
        if name == "--survey" {
            plan.survey = true;
            continue;
        }
        let value = args.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--runs" => plan.runs = number(&value)?,
            "--seed" => plan.seed = Some(number(&value)?),
            "--only" => plan.only = value,
            "--geometry" => plan.geometry = Some(geometry(&value)?),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(plan)
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn geometry(text: &str) -> Result<Geometry, String> {
    let parts = text.split(',').map(number).collect::<Result<Vec<usize>, _>>()?;
    match parts[..] {
        // The window is searched twice its width to both sides, in fewer slots than there are.
        [data, parity, slots, window]
            if data > 0 && window > 0 && slots > 4 * window && parity <= 2 =>
        {
            Ok(Geometry { data, parity, slots, rows: model::ROWS, window })
        }
        _ => Err("a geometry is K,P,SLOTS,W with P up to 2 and SLOTS above 4 W".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::campaign;
    use crate::model::{Scenario, Stats};
    use crate::mutants::{MUTANTS, Mutant};
    use crate::report::{CORRECT, catch};

    #[test]
    fn the_correct_variant_keeps_every_promise() {
        for geometry in CORRECT {
            for scenario in geometry.scenarios() {
                let mut stats = Stats::default();
                for seed in 0..25 {
                    let run = campaign::run(seed, geometry, (scenario, Mutant::None), &mut stats);
                    assert_eq!(run, Ok(()), "seed {seed}, {scenario:?}, {geometry:?}");
                }
                assert!(stats.acknowledged > 0 && stats.crashes_in_mount > 0);
            }
        }
    }

    #[test]
    fn every_rule_left_out_breaks_a_promise() {
        for entry in MUTANTS {
            assert!(catch(entry, 60).is_some(), "survived: {}", entry.name);
        }
    }

    #[test]
    fn a_run_repeats_from_its_seed() {
        let once = || {
            let mut stats = Stats::default();
            let variant = (Scenario::Rot, Mutant::None);
            assert_eq!(campaign::run(7, &CORRECT[0], variant, &mut stats), Ok(()));
            format!("{stats:?}")
        };
        assert_eq!(once(), once());
    }
}
