//! What breaks first, and what then: `cargo run --release -p scale -- machine|fleet|simulate`.
//!
//! One machine at 100 Gbit/s and fleets on paper, from figures that were measured here; and a
//! simulation of a fleet's questions and archives, with failures, that plays the product's own
//! rules ([`fleet::Course`], the archive's patience, claims and choices) with made-up sensors,
//! networks and stores. Time is an argument, chance a seed: the same seed is the same history.
//! Text: docs/scale.md.

mod agenda;
mod archiving;
mod chance;
mod fanout;
mod inputs;
mod machine;
mod plan;
mod server;
mod simulated;
mod table;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::inputs::Inputs;
use crate::table::Table;

#[derive(Debug, Parser)]
#[command(name = "scale", about = "One machine at 100 Gbit/s, fleets of thousands: what breaks")]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// What is computed from
    #[arg(long, global = true, default_value = inputs::FILE)]
    figures: PathBuf,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One machine at 100 Gbit/s: steps, resources, what is full first
    Machine,
    /// Fleets of 10 to 1000 sensors: bytes, requests, nodes, times
    Fleet,
    /// A fleet's questions and archives, with failures
    Simulate {
        /// The history
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Sensors that are asked at most
        #[arg(long, default_value_t = 50_000)]
        asked: usize,
        /// Sensors that archive
        #[arg(long, default_value_t = 10_000)]
        archives: usize,
    },
    /// The figures, and where they are from
    Figures,
}

fn main() -> Result<()> {
    let Arguments { what, figures } = Arguments::parse();
    let tables = tables(&what, &Inputs::read(&figures)?)?;
    let text: String = tables.iter().map(Table::text).collect();
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn tables(what: &What, inputs: &Inputs) -> Result<Vec<Table>> {
    Ok(match *what {
        What::Machine => machine::tables(inputs)?,
        What::Fleet => plan::tables(inputs)?,
        What::Simulate { seed, asked, archives } => vec![
            simulated::fanout(inputs, seed, asked)?,
            simulated::archive(inputs, seed, archives)?,
            simulated::merging(inputs, seed, archives)?,
        ],
        What::Figures => {
            let mut table = Table::new("Figures", &["name", "value", "from"]);
            inputs.figures()?.into_iter().for_each(|line| table.push(line));
            vec![table]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tables can be made of the figures of this repository, in small.
    #[test]
    fn the_simulation_has_a_line_for_each_setting() {
        let what = What::Simulate { seed: 1, asked: 1000, archives: 200 };
        let tables = tables(&what, &Inputs::of_repository()).unwrap();
        let lines = |table: &Table| table.text().lines().filter(|it| it.starts_with('|')).count();
        assert_eq!(tables.iter().map(lines).collect::<Vec<_>>(), [2 + 4, 2 + 4, 2 + 4]);
    }
}
