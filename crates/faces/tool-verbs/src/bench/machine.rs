//! `wirespool bench host`.

use ::runs::{Contest, Disk, Going, Machine, Order, Plan, Rounds, contest};
use host::{StopFlag, SystemClock, allowed_cpus, memory_available_bytes};
use qualify::{Consent, open};
use units::Random;

use super::flags::HostFlags;
use super::outcome::Results;
use super::runs::{random, show};
use crate::failure::{Outcome, Usage};
use crate::progress::Progress;

/// Each piece of work takes so long at least, and at most: of a minute there are 25 rounds.
const SLICE_NS: (u64, u64) = (20_000_000, 200_000_000);
/// As a part of the time for all of them.
const SLICES: u64 = 300;
/// Memory that is tried: of what is free, this part, between these bounds. More than any cache has.
const MEMORY_SHARE: u64 = 8;
const MEMORY_BYTES: (u64, u64) = (64 << 20, 1 << 30);

pub(super) fn run(flags: &HostFlags) -> Outcome {
    let results = Results::new(&flags.outputs)?;
    let stop = StopFlag::install()?;
    let mut random = random()?;
    let found = match &flags.directory {
        None => measured(flags, &results, None, (&mut random, &stop)),
        Some(directory) if !directory.is_dir() => {
            Err(Usage(format!("{} is no directory", page::safe::path(directory))).into())
        }
        Some(directory) => {
            let mut progress = Progress::new("bench");
            let seed = random.next();
            let opened = open(directory, flags.size, &Consent::default(), seed, &mut |done, of| {
                progress.bytes(done, of);
                stop.flow()
            });
            progress.finish();
            let mut opened = opened?;
            let writer = opened.writer.as_deref_mut().expect("a file of our own is written to");
            let disk = Disk::new(directory, opened.reader.as_ref(), writer, &mut random)?;
            let found = measured(flags, &results, Some(disk), (&mut random, &stop));
            opened.close(true)?;
            found
        }
    }?;
    results.tell(&found, machine_view::Ran::Machine, &mut random)
}

fn measured(
    flags: &HostFlags,
    results: &Results<'_>,
    disk: Option<Disk<'_>>,
    (random, stop): (&mut Random, &StopFlag),
) -> anyhow::Result<Contest> {
    let ns = u64::try_from(flags.duration.as_nanos())?;
    let plan =
        Plan { warm_ups: 1, rounds: Rounds::during(ns), order: Order::Turns, cpus: Vec::new() };
    let slice_ns = (ns / SLICES).clamp(SLICE_NS.0, SLICE_NS.1);
    let (least, most) = MEMORY_BYTES;
    let memory_bytes = (memory_available_bytes().unwrap_or(0) / MEMORY_SHARE).clamp(least, most);
    let size = (allowed_cpus()?.len(), memory_bytes);
    let seed = Random::new(random.next());
    let mut machine = Machine::new((&SystemClock, seed), size, disk, slice_ns)?;
    let subjects = machine.subjects();
    results.check(&subjects)?;
    let mut progress = Progress::new("bench");
    let mut hear = |going: Going<'_>| {
        show(&mut progress, going);
        stop.flow()
    };
    let found = contest(&subjects, &plan, &mut machine, (&SystemClock, random), &mut hear);
    progress.finish();
    Ok(found?)
}
