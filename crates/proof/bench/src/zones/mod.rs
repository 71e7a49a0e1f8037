//! What rate a ring guarantees on a disk whose rate falls from the outer to the inner tracks, by
//! the order of its extents: by formula, with the volume's order on the modelled disk, and with the
//! recorder's own engine on it.

mod engine;
mod order;
mod setting;
mod trace;

use std::path::PathBuf;

use units::number::real;

use crate::outcome::Outcome;
use crate::statistics::Sample;
use anyhow::Result;
use serde_json::json;
use setting::{PUBLISHED, Published, Ring};

/// Guaranteed over mean rate, with 2 GiB of pool a disk.
const GOAL: f64 = 0.97;
const POOL_BYTES_PER_DISK: u64 = 2 << 30;
/// Pools of the table, in bytes.
const POOLS: [f64; 2] = [1024e6, 4096e6];

/// Slots of an extent, whatever its bytes.
const SLOTS_PER_EXTENT: u32 = 16;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Directory of the published profiles, single-8tb.csv and raid6-10x4tb.csv
    profiles: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let mut outcome = Outcome::new("zones: guaranteed rates by the order of extents, MB/s");
    for published in &PUBLISHED {
        outcome.line(format!("{}: mean and guaranteed rate", published.file));
        outcome.line("  zones  pool MB           formula     order on disk    engine on disk");
        for zones in [1, 2, 4, 8, 16] {
            row(&mut outcome, options, published, zones)?;
        }
    }
    outcome.not_proven("that a real disk has this profile, or that its seeks take as long");
    outcome.not_proven("pieces of 2 MiB: those of the engine stand for a 16th of an extent");
    Ok(outcome)
}

fn row(outcome: &mut Outcome, options: &Options, published: &Published, zones: u16) -> Result<()> {
    let profile = published.profile(&options.profiles)?;
    let slots_per_extent = SLOTS_PER_EXTENT;
    let extents = published.extents();
    let ring = Ring { published, profile: &profile, extents, zones, slots_per_extent };
    let (formula, disk) = (order::by_formula(&ring), order::on_disk(&ring)?);
    let engine = engine::saturated(&ring)?;
    for pool in POOLS {
        let rates = [&formula, &disk, &engine].map(|trace| [trace.mean(), trace.guaranteed(pool)]);
        let text = rates.map(|[mean, rate]| format!("  {:7.1} {:7.1}", mean / 1e6, rate / 1e6));
        outcome.line(format!("  {zones:5}  {:7.0}", pool / 1e6) + &text.concat());
        outcome.push_json(
            published.file,
            json!({ "zones": zones, "pool_bytes": pool, "mean_and_guaranteed_bytes_per_s": rates }),
        );
    }
    if [1, 8, 16].contains(&zones) {
        let pool = real(POOL_BYTES_PER_DISK * published.disks);
        let ratio = Sample::new([engine.guaranteed(pool) / engine.mean()])?;
        let what = format!("  engine, Z = {zones}, 2 GiB of pool a disk, guaranteed / mean");
        if zones == 1 {
            outcome.line(format!("{what}: {:.2}", ratio.median()));
        } else {
            outcome.judge(&what, &ratio, GOAL);
            let used = real(engine::arriving(&ring, GOAL * engine.mean())?);
            let (used, pool) = (used / 1e6, pool / 1e6);
            outcome.line(format!(
                "  a constant arrival of {GOAL} of the mean used {used:.0} MB of {pool:.0}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::trace::Trace;
    use super::*;

    /// An executable model of the order, `zone_levelling.py`, which has no code of ours, prints
    /// these for the published profiles: profile, zones, guaranteed MB/s with 1024 and 4096 MB.
    const EXPECTED: [(usize, u16, [f64; 2]); 10] = [
        (0, 1, [133.4, 134.7]),
        (0, 2, [175.0, 175.8]),
        (0, 4, [196.1, 196.6]),
        (0, 8, [202.6, 202.9]),
        (0, 16, [203.1, 203.2]),
        (1, 1, [843.8, 852.7]),
        (1, 2, [1102.2, 1110.9]),
        (1, 4, [1235.6, 1242.3]),
        (1, 8, [1196.9, 1288.2]),
        (1, 16, [1083.9, 1293.4]),
    ];

    /// And these for the profiles that are made up.
    const EXPECTED_MADE_UP: [(usize, u16, [f64; 2]); 10] = [
        (0, 1, [119.4, 120.4]),
        (0, 2, [159.5, 160.2]),
        (0, 4, [173.8, 174.2]),
        (0, 8, [178.0, 178.2]),
        (0, 16, [178.5, 178.6]),
        (1, 1, [731.7, 734.3]),
        (1, 2, [971.3, 973.7]),
        (1, 4, [1055.6, 1057.2]),
        (1, 8, [1007.4, 1083.1]),
        (1, 16, [926.8, 1088.3]),
    ];

    /// Holds the rates of a trace to a line of each table whose profiles are there.
    fn check(line: usize, tolerance: f64, shape: Shape, trace: impl Fn(&Ring<'_>) -> Trace) {
        for (directory, is_published) in testdata::zone_profiles() {
            let expected = if is_published { EXPECTED } else { EXPECTED_MADE_UP }[line];
            check_profile(&directory, expected, (tolerance, shape), &trace);
        }
    }

    fn check_profile(
        directory: &Path,
        (index, zones, expected): (usize, u16, [f64; 2]),
        (tolerance, shape): (f64, Shape),
        trace: &impl Fn(&Ring<'_>) -> Trace,
    ) {
        let published = &PUBLISHED[index];
        let profile = &published.profile(directory).unwrap();
        let extents = published.extents() / shape.one_in / 64 * 64;
        let slots_per_extent = shape.slots_per_extent;
        let trace = trace(&Ring { published, profile, extents, zones, slots_per_extent });
        for (pool, expected) in POOLS.into_iter().zip(expected) {
            let (rate, name) = (trace.guaranteed(pool) / 1e6, published.file);
            let error = (rate / expected - 1.0).abs();
            assert!(error < tolerance, "{name}, {zones} zones: {rate:.1} of {expected}");
        }
    }

    /// Of how many extents one is written, and its slots.
    #[derive(Clone, Copy)]
    struct Shape {
        one_in: u64,
        slots_per_extent: u32,
    }

    #[test]
    fn the_formula_is_that_of_the_executable_model() {
        let shape = Shape { one_in: 1, slots_per_extent: 64 };
        (0..EXPECTED.len()).for_each(|line| check(line, 0.001, shape, order::by_formula));
    }

    #[test]
    fn the_order_on_the_modelled_disk_guarantees_what_the_model_says() {
        let shape = Shape { one_in: 1, slots_per_extent: 4 };
        for line in 0..EXPECTED.len() {
            check(line, 0.03, shape, |ring| order::on_disk(ring).unwrap());
        }
    }

    #[test]
    fn the_engine_on_the_modelled_disk_guarantees_what_the_model_says() {
        // From first to last every extent counts, because the pool levels the lap; with many zones
        // it levels a cycle, and the pieces must be small against it. They must be small against
        // the pool, too: while superblocks are written, W of them are waited for.
        let (coarse, fine) = ((1, 16), (16, 64));
        for (line, (one_in, slots_per_extent)) in [(0, coarse), (3, coarse), (5, coarse), (8, fine)]
        {
            let shape = Shape { one_in, slots_per_extent };
            check(line, 0.03, shape, |ring| engine::saturated(ring).unwrap());
        }
    }

    #[test]
    fn the_guaranteed_rate_never_fills_the_pool_and_a_little_more_does() {
        for (directory, _) in testdata::zone_profiles() {
            let published = &PUBLISHED[0];
            let profile = published.profile(&directory).unwrap();
            let (extents, zones, slots_per_extent) = (256, 8, 16);
            let ring = Ring { published, profile: &profile, extents, zones, slots_per_extent };
            let guaranteed = engine::saturated(&ring).unwrap().guaranteed(POOLS[0]);
            let used = real(engine::arriving(&ring, guaranteed).unwrap());
            assert!(used < POOLS[0] * 1.03, "{used} bytes used of {}", POOLS[0]);
            let used = real(engine::arriving(&ring, guaranteed * 1.03).unwrap());
            assert!(used > POOLS[0], "3 % more overflows: {used}");
        }
    }
}
