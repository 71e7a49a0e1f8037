//! Benchmarks that anyone can rerun: `cargo run --release -p bench --
//! ingest|processes|costs|extract|find|index|sessions|parity|zones|low-rate|write|scrub|replay|
//! live|top|endure`.
//!
//! They drive the installed recorder and its peers as programs, on a disk of the user's choice, and
//! print the machine, every repetition's spread, and what the numbers do not prove. A ratio whose
//! repetitions spread by more than 10 % gets no verdict. Results: docs/benchmarks.md.

mod asking;
mod chance;
mod conversation;
mod costs;
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
mod recording;
mod replay;
mod scrub;
mod sessions;
mod statistics;
mod stenographer;
mod storing;
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
    #[command(flatten)]
    Recording(recording::Benchmark),
    #[command(flatten)]
    Asking(asking::Benchmark),
    #[command(flatten)]
    Storing(storing::Benchmark),
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
        Benchmark::Recording(benchmark) => match recording::run(benchmark)? {
            Some(outcome) => outcome,
            None => return Ok(ExitCode::SUCCESS),
        },
        Benchmark::Asking(benchmark) => asking::run(&benchmark)?,
        Benchmark::Storing(benchmark) => storing::run(&benchmark)?,
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
