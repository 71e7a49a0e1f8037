//! Benchmarks of recording: what it costs, and what it keeps up with.

use anyhow::Result;
use clap::Subcommand;

use crate::outcome::Outcome;
use crate::{costs, endure, ingest, live, low_rate, processes, replay};

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// Recording a file into a volume, against fio's rate on the same file
    Ingest(ingest::Options),
    /// Recording a file with the indexer as a process, against the same with it as a thread
    Processes(processes::Options),
    /// The one process of `processes`
    #[command(hide = true)]
    Alone(processes::Alone),
    /// Instructions of a recording by step, under callgrind; bytes and time of archiving
    Costs(costs::Options),
    /// The one process of `costs` that archives
    #[command(hide = true)]
    Archived(costs::Archived),
    /// Recording from a veth pair, against tcpdump, dumpcap, netsniff-ng, stenotype; needs root
    Live(live::Options),
    /// Bytes written to the members for each byte of packets, at low rates
    LowRate(low_rate::Options),
    /// Recording a steady rate for half an hour, round and round; needs root
    Endure(endure::Options),
    /// Filling a veth pair at top speed, against trafgen; needs root
    Replay(replay::Options),
}

/// `None`: what was run is a part of another benchmark.
pub(crate) fn run(benchmark: Benchmark) -> Result<Option<Outcome>> {
    Ok(Some(match benchmark {
        Benchmark::Ingest(options) => ingest::run(&options)?,
        Benchmark::Processes(options) => processes::run(&options)?,
        Benchmark::Alone(options) => {
            processes::alone(options)?;
            return Ok(None);
        }
        Benchmark::Costs(options) => costs::run(&options)?,
        Benchmark::Archived(archived) => {
            costs::archive(&archived)?;
            return Ok(None);
        }
        Benchmark::Live(options) => live::run(&options)?,
        Benchmark::LowRate(options) => low_rate::run(&options)?,
        Benchmark::Endure(options) => endure::run(&options)?,
        Benchmark::Replay(options) => replay::run(&options)?,
    }))
}
