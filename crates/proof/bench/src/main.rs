//! Benchmarks that anyone can rerun: `cargo run --release -p bench --
//! ingest|processes|extract|find|index|sessions|parity|zones|low-rate|write|scrub|replay|live|top|
//! endure`.
//!
//! They drive the installed recorder and its peers as programs, on a disk of the user's choice, and
//! print the machine, every repetition's spread, and what the numbers do not prove. A ratio whose
//! repetitions spread by more than 10 % gets no verdict. Results: docs/benchmarks.md.

mod chance;
mod conversation;
mod endure;
mod extract;
mod find;
mod index_size;
mod ingest;
mod live;
mod low_rate;
mod machine;
mod mix;
mod outcome;
mod packets;
mod pair;
mod parity;
mod pcap_file;
mod processes;
mod program;
mod recorder;
mod replay;
mod scrub;
mod sessions;
mod statistics;
mod stenographer;
mod top;
mod traffic;
mod write;
mod zones;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

use crate::machine::Machine;

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Benchmarks of wirespool against its peers")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Report as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Recording a file into a volume, against fio's rate on the same file
    Ingest(ingest::Options),
    /// Recording a file with the indexer as a process, against the same with it as a thread
    Processes(processes::Options),
    /// The one process of `processes`
    #[command(hide = true)]
    Alone(processes::Alone),
    /// Getting one session out of a volume, against tcpdump over the same packets
    Extract(extract::Options),
    /// Finding one session among millions, against another engine over the same files
    Find(find::Options),
    /// Bytes of index a session, by column
    Index(index_size::Options),
    /// Decoding and the session table, nanoseconds a packet
    Sessions(sessions::Options),
    /// Checksums and parity, alone and in one pass, gigabytes a second
    Parity(parity::Options),
    /// Rates that a hard disk guarantees, by the order of the ring's extents
    Zones(zones::Options),
    /// Bytes written to the members for each byte of packets, at low rates
    LowRate(low_rate::Options),
    /// Writing full columns onto several files, against fio on the same files
    Write(write::Options),
    /// Scrubbing a full volume, against dd of its members
    Scrub(scrub::Options),
    /// Filling a veth pair at top speed, against trafgen; needs root
    Replay(replay::Options),
    /// Recording from a veth pair, against tcpdump, dumpcap, netsniff-ng, stenotype; needs root
    Live(live::Options),
    /// `top` beside a recorder, against iftop and bandwhich; needs root
    Top(top::Options),
    /// Recording a steady rate for half an hour, round and round; needs root
    Endure(endure::Options),
    /// Only write the synthetic mix to a file
    Mix {
        /// The pcap file to write
        file: PathBuf,
        #[command(flatten)]
        amount: mix::Amount,
    },
}

/// Exit code 1 when a goal was missed.
fn main() -> Result<ExitCode> {
    let Arguments { benchmark, json } = Arguments::parse();
    ensure!(
        !cfg!(debug_assertions),
        "a debug build measures nothing: cargo run --release -p bench"
    );
    let before = Machine::look()?;
    let outcome = match benchmark {
        Benchmark::Ingest(options) => ingest::run(&options)?,
        Benchmark::Processes(options) => processes::run(&options)?,
        Benchmark::Alone(options) => {
            processes::alone(options)?;
            return Ok(ExitCode::SUCCESS);
        }
        Benchmark::Extract(options) => extract::run(&options)?,
        Benchmark::Find(options) => find::run(&options)?,
        Benchmark::Index(options) => index_size::run(&options)?,
        Benchmark::Sessions(options) => sessions::run(&options)?,
        Benchmark::Parity(options) => parity::run(&options)?,
        Benchmark::Zones(options) => zones::run(&options)?,
        Benchmark::LowRate(options) => low_rate::run(&options)?,
        Benchmark::Write(options) => write::run(&options)?,
        Benchmark::Scrub(options) => scrub::run(&options)?,
        Benchmark::Replay(options) => replay::run(&options)?,
        Benchmark::Live(options) => live::run(&options)?,
        Benchmark::Top(options) => top::run(&options)?,
        Benchmark::Endure(options) => endure::run(&options)?,
        Benchmark::Mix { file, amount } => {
            mix::write(&file, amount)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let after = Machine::look()?;
    let text = if json {
        serde_json::to_string_pretty(&outcome.to_json(&before, &after))? + "\n"
    } else {
        outcome.text(&before, &after)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(if outcome.is_missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
