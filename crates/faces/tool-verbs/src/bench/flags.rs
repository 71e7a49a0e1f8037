//! Flags of `wirespool bench`, and what they mean together.

use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ::runs::{Command, Order, Plan, Rounds, Surroundings};
use clap::{Args, Subcommand, ValueEnum};

use super::parameters::{List, expanded};
use crate::arguments::{Cpus, cpus, duration, size};
use crate::failure::Usage;

/// Measure how long commands take, how much that differs, and why.
///
/// Runs commands again and again, several of them in turn, forth and back, so that what drifts
/// meets all of them alike. Says of each how long it takes and how much runs differ, whether they
/// have two modes, changes or a drift, and which of the things that were recorded with each run
/// explains them: order, time, processor, memory node, temperature, what else the machine did, how
/// much of a file was cached. Each further command is compared with the first, with an interval.
/// Without a number it makes 30 runs of each; more while they take less than 3 s in all, and 10 at
/// least where they take over a minute.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  wirespool bench -- ./sort data.txt
  wirespool bench -w 3 -- ./sort data.txt -- ./sort --new data.txt
  wirespool bench --shell sh -p 'sync' -- 'cat data.txt | wc -l'
  wirespool bench --cpus 0-3 --file data.txt -- ./sort data.txt
  wirespool bench -L level 1,6,9 -- gzip -k -c -{level} data.txt
  wirespool bench --export-json monday.json -- ./sort data.txt
  wirespool bench --baseline monday.json -- ./sort data.txt
  wirespool bench host /data

Commands are started as they are, without a shell, unless there is one. An argument -- begins the
next command; one of its own needs a shell. The files of --export-json have the keys of hyperfine's.

Exit code 1 when something is slower than the baseline, 5 when that is not known."
)]
pub struct Flags {
    #[command(subcommand)]
    pub(super) what: Option<What>,
    #[command(flatten)]
    pub(super) commands: CommandFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    Host(HostFlags),
}

/// How fast this machine is: processors, memory, and a disk, in a minute.
///
/// Twelve short pieces of work, in turn, again and again: numbers and parity computed by one
/// processor and by all, memory copied and read, and, in a directory, a file of its own written and
/// read in order and at random places, around the page cache. With --baseline it says what got
/// slower since another day.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool bench host
  wirespool bench host /data --export-json monday.json
  wirespool bench host /data --baseline monday.json

Exit code 1 when something is slower than the baseline, 5 when that is not known.")]
pub(super) struct HostFlags {
    /// A directory on the disk to look at: a file is made there and removed [default: no disk]
    pub(super) directory: Option<PathBuf>,
    /// Bytes of the file that it writes
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G",
          requires = "directory")]
    pub(super) size: u64,
    /// How long to look
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(super) duration: Duration,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}

/// Where the results go.
#[derive(Debug, Args)]
pub(super) struct Outputs {
    /// Report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write the JSON to this file: for --baseline, and for programs that read hyperfine's
    #[arg(long, value_name = "FILE")]
    pub(super) export_json: Option<PathBuf>,
    /// Write a line for each run to this file
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(super) force: bool,
    /// Compare the results with those in this file, of this program or of hyperfine
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// What medians may differ by before that counts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent,
          requires = "baseline")]
    pub(super) tolerance: f64,
}

#[derive(Debug, Args)]
pub(super) struct CommandFlags {
    /// Runs of each that do not count, before the others
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    warmup: u32,
    /// Runs of each
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with_all = ["min_runs", "max_runs"])]
    runs: Option<u32>,
    /// Runs of each at least [default: 10]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    min_runs: Option<u32>,
    /// Runs of each at most [default: 1000]
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_runs: Option<u32>,
    /// A line for sh before each run, which is not measured; one for all commands, or one for each
    #[arg(short, long, value_name = "LINE")]
    prepare: Vec<String>,
    /// A line for sh before everything
    #[arg(short, long, value_name = "LINE")]
    pub(super) setup: Option<String>,
    /// A line for sh behind everything, also after a failure
    #[arg(short, long, value_name = "LINE")]
    pub(super) cleanup: Option<String>,
    /// Have this shell run each command, which is measured with it; none for no shell
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "none")]
    shell: OsString,
    /// No shell, as without --shell
    #[arg(short = 'N', conflicts_with = "shell")]
    no_shell: bool,
    /// Measure commands that fail, too
    #[arg(short, long)]
    ignore_failure: bool,
    /// What a command is called; once for each
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    names: Vec<String>,
    /// Run each command with each of these values in the place of {NAME}
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "VALUES"])]
    parameter_list: Vec<String>,
    /// The order within a round
    #[arg(long, value_enum, default_value_t = OrderFlag::Turns)]
    order: OrderFlag,
    /// Keep runs on these processors, one after another, such as 0-3 or 0,2
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(super) cpus: Option<Cpus>,
    /// Record how much of this file is cached before each run, and its extents
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Record the first line of this file before each run: a sensor, a setting
    #[arg(long, value_name = "FILE")]
    fact: Vec<PathBuf>,
    /// What commands read; nothing without
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Let commands write to standard error; else what they write there is dropped
    #[arg(long)]
    show_output: bool,
    #[command(flatten)]
    pub(super) outputs: Outputs,
    /// A command and its arguments; behind a further -- the next one
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderFlag {
    /// Forth and back: A B, B A
    Turns,
    /// By chance
    Random,
}

impl CommandFlags {
    /// The commands, each with its name and what is before it.
    pub(super) fn commands(&self) -> Result<Vec<Command>, Usage> {
        let commands: Vec<&[OsString]> = self.words.split(|word| word == "--").collect();
        if commands.iter().any(|words| words.is_empty()) {
            let what = if self.words.is_empty() { "no command" } else { "an empty command" };
            return Err(Usage(format!("{what}; write wirespool bench -- COMMAND [-- COMMAND]...")));
        }
        let count = commands.len();
        for (flag, given, may_be_one) in
            [("--prepare", self.prepare.len(), true), ("--command-name", self.names.len(), false)]
        {
            if given > 0 && given != count && !(may_be_one && given == 1) {
                return Err(Usage(format!("{flag} {given} times for {count} commands")));
            }
        }
        let lists = List::all(&self.parameter_list)?;
        let commands = commands.into_iter().enumerate();
        Ok(expanded(commands.map(|(at, words)| self.command(at, words)).collect(), &lists))
    }

    fn command(&self, at: usize, words: &[OsString]) -> Command {
        let line = words.join(OsStr::new(" "));
        let name = self.names.get(at).cloned();
        let has_shell = !self.no_shell && self.shell != "none";
        let prepare = self.prepare.get(at).or_else(|| self.prepare.first());
        Command {
            name: name.unwrap_or_else(|| line.to_string_lossy().into_owned()),
            words: if has_shell {
                vec![self.shell.clone(), "-c".into(), line]
            } else {
                words.to_vec()
            },
            prepare: prepare.cloned(),
            parameters: Vec::new(),
        }
    }

    pub(super) fn plan(&self) -> Result<Plan, Usage> {
        let usual = Rounds::usual();
        let (least, most) = (self.min_runs.unwrap_or(usual.least), self.max_runs);
        if self.min_runs.is_some() && most.is_some_and(|most| least > most) {
            let most = most.unwrap_or_default();
            return Err(Usage(format!("--min-runs {least} with --max-runs {most}")));
        }
        let most = most.unwrap_or(usual.most.max(least));
        let rounds =
            self.runs.map_or(Rounds { least: least.min(most), most, ..usual }, Rounds::exactly);
        let order = match self.order {
            OrderFlag::Turns => Order::Turns,
            OrderFlag::Random => Order::Random,
        };
        let cpus = self.cpus.as_ref().map_or_else(Vec::new, |cpus| cpus.0.clone());
        Ok(Plan { warm_ups: self.warmup, rounds, order, cpus })
    }

    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings {
            input: self.input.clone(),
            is_heard: self.show_output,
            ignores_failure: self.ignore_failure,
            files: self.file.clone(),
            facts: self.fact.clone(),
        }
    }
}

/// From 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "a number of percent from 0 to 100, such as 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_percent() {
        assert_eq!((percent("5"), percent("2.5%"), percent("0")), (Ok(5.0), Ok(2.5), Ok(0.0)));
        for text in ["", "-1", "101", "nan", "five"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
