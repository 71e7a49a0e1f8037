//! Benchmarks of the volume: checksums, parity, writing, scrubbing, the order of a disk.

use anyhow::Result;
use clap::Subcommand;

use crate::outcome::Outcome;
use crate::{parity, scrub, write, zones};

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// Checksums and parity, alone and in one pass, gigabytes a second
    Parity(parity::Options),
    /// Writing full columns onto several files, against fio on the same files
    Write(write::Options),
    /// Scrubbing a full volume, against dd of its members
    Scrub(scrub::Options),
    /// Rates that a hard disk guarantees, by the order of the ring's extents
    Zones(zones::Options),
}

pub(crate) fn run(benchmark: &Benchmark) -> Result<Outcome> {
    match benchmark {
        Benchmark::Parity(options) => parity::run(options),
        Benchmark::Write(options) => write::run(options),
        Benchmark::Scrub(options) => scrub::run(options),
        Benchmark::Zones(options) => zones::run(options),
    }
}
