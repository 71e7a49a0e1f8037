//! Seeded simulation of the volume: the production code on modelled disks, stopped by crashes,
//! against a reference model of what was acknowledged.
//!
//! One seed is one history: a shape, members, faults within what its parity bears (or, on purpose,
//! beyond), and crashes at any write or flush, those of a mount included. After every mount
//! everything that must be there is read and compared, and nothing else may be there. A failing
//! seed prints the command that repeats it.
//!
//! With `--recorder` one seed is a history of the whole recorder ([`recorder`]); with `--search` it
//! is a few large rings of which only the end is looked for ([`search`]).
//!
//! `plan` is what a seed decides at once, `history` the course of events, `writing` what a recorder
//! does in it, `faults` what goes wrong besides crashes, `astray` writes that do not arrive,
//! `upkeep` what is done about it, `rivals` other writers on the same disks, `truth` the reference
//! model, `check` the promises, `disks` the instant of a crash, `campaign` many seeds on several
//! threads, `ledger` the file of a campaign that goes on for nights, `probes` what it must come to,
//! `nonces` that none comes twice. The folder `mutants` holds the rules of recovery, each with a
//! change that takes it out of the volume: `cargo xtask mutants` shows that the simulation notices.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

mod astray;
mod campaign;
mod check;
mod content;
mod counters;
mod disks;
mod faults;
mod history;
mod keys;
mod ledger;
mod nonces;
mod orders;
mod pieces;
mod plan;
mod probes;
mod quorum;
mod random;
mod recorder;
mod report;
mod rivals;
mod search;
mod sum;
mod took;
mod truth;
mod upkeep;
mod writing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use campaign::Aim;
use ledger::Ledger;
use orders::{Kind, Orders};
use sum::Sum;
use took::Begin;

const USAGE: &str = "\
usage: sim [KIND] --seeds N [--seed S] [options]
       sim [KIND] --campaign FILE [--seeds N | --crashes N] [--seed S] [options]
  --recorder           KIND: histories of the whole recorder, not of the volume alone
  --search             KIND: the search for the end of a ring alone, in rings of up to 2^24 slots
  --seeds N            run N histories
  --seed S             the first of them (default 0); alone: that one
  --campaign FILE      go on with the campaign in FILE, or begin it, until N histories or crashes
                       are done in all; without a number only print what it came to. It may be
                       killed at any instant: the same command goes on
  --crashes N          of a campaign: until it has come to N crashes
  --threads T          on so many threads (default: one for each processor)
  --json               print the sums as one JSON object
  --trace              print every step on standard error
  --stop-at-failure    end with the first history that fails
  --help               print this
exit status: 0 every promise was kept, 1 one was broken, or a rare state was reached too rarely,
2 usage, 3 the campaign's file cannot be used";

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Arguments {
    orders: Orders,
    is_json: bool,
    campaign: Option<(PathBuf, Aim)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let arguments = match parse(words.into_iter()) {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Arguments { orders, is_json, campaign } = arguments;
    // A thread of the recorder that panics is not the one that knows the seed.
    if orders.of == Kind::Volume {
        campaign::name_seed_of_panics(|seed, what| {
            eprintln!("{}", failure(Kind::Volume, (seed, what)));
        });
    }
    let done = match campaign {
        Some((path, aim)) => go_on((orders, aim), is_json, &path),
        None => Ok(run(orders, is_json)),
    };
    match done {
        Ok(is_good) => ExitCode::from(u8::from(!is_good)),
        Err(what) => {
            eprintln!("{what}");
            ExitCode::from(3)
        }
    }
}

/// Whether every promise was kept and every probe reached.
fn run(orders: Orders, is_json: bool) -> bool {
    let begin = Begin::now();
    let sum =
        campaign::run(orders, &|seed, what| eprintln!("{}", failure(orders.of, (seed, what))));
    let took = begin.took();
    if is_json {
        println!("{}", report::json(&sum, orders, took));
    } else if let Err(error) = report::print(&sum, orders, took, &mut std::io::stdout().lock()) {
        eprintln!("cannot print: {error}");
    }
    is_good(orders.of, &sum)
}

fn go_on((orders, aim): (Orders, Aim), is_json: bool, path: &Path) -> Result<bool, String> {
    if cfg!(panic = "abort") && aim != Aim::Nothing {
        return Err("a failed assertion would end the campaign: build with --profile sim".into());
    }
    let mut ledger = Ledger::open(path, orders.of)?;
    if let Some(first) =
        ledger.first_seed.filter(|&it| orders.first_seed != 0 && orders.first_seed != it)
    {
        return Err(format!("{}: this campaign began with seed {first}", path.display()));
    }
    let say = |seed: u64, what: &str| eprintln!("{}", failure(orders.of, (seed, what)));
    campaign::go_on(&mut ledger, (orders, aim), &say)?;
    let first_seed = ledger.first_seed.unwrap_or(orders.first_seed);
    let orders = Orders { first_seed, ..orders };
    if is_json {
        println!("{}", report::json(&ledger.sum, orders, ledger.took));
    } else if let Err(error) =
        report::print_table(orders.of, &ledger, &mut std::io::stdout().lock())
    {
        eprintln!("cannot print: {error}");
    }
    for (seed, what) in &ledger.sum.failures {
        say(*seed, what);
    }
    Ok(is_good(orders.of, &ledger.sum))
}

fn is_good(of: Kind, sum: &Sum) -> bool {
    sum.failures.is_empty() && probes::missing(of, sum).is_empty()
}

/// One line, with the command that repeats it.
fn failure(of: Kind, (seed, what): (u64, &str)) -> String {
    let of = of.option();
    format!("FAILED: cargo run --profile sim -p sim -- {of}--seed {seed}   # {what}")
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut seeds, mut first_seed, mut crashes, mut campaign) = (None, None, None, None);
    let mut threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut is_json, mut trace, mut stop_at_failure) = (false, false, false);
    let mut of = Kind::Volume;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seeds" => seeds = Some(number(&value()?)?),
            "--seed" => first_seed = Some(number(&value()?)?),
            "--crashes" => crashes = Some(number(&value()?)?),
            "--campaign" => campaign = Some(PathBuf::from(value()?)),
            "--threads" => threads = number(&value()?)?,
            "--recorder" => of = Kind::Recorder,
            "--search" => of = Kind::Search,
            "--json" => is_json = true,
            "--trace" => trace = true,
            "--stop-at-failure" => stop_at_failure = true,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    let aim = match (seeds, crashes) {
        (Some(_), Some(_)) => return Err("either --seeds or --crashes".to_owned()),
        (Some(seeds), None) => Aim::Seeds(seeds),
        (None, Some(crashes)) => Aim::Crashes(crashes),
        (None, None) => Aim::Nothing,
    };
    let seeds = match (aim, first_seed) {
        (Aim::Crashes(_), _) if of == Kind::Search => {
            return Err("a search has no crashes: --seeds".to_owned());
        }
        (Aim::Crashes(_), _) if campaign.is_none() => {
            return Err("--crashes is of a --campaign".to_owned());
        }
        (Aim::Seeds(seeds), _) => seeds,
        _ if campaign.is_some() => u64::MAX,
        (_, Some(_)) => 1,
        (_, None) => return Err("how many seeds?".to_owned()),
    };
    if seeds == 0 || threads == 0 {
        return Err("at least one seed on one thread".to_owned());
    }
    let first_seed = first_seed.unwrap_or(0);
    let seeds = seeds.min(u64::MAX - first_seed);
    let orders = Orders { of, first_seed, seeds, threads, stop_at_failure, trace };
    Ok(Arguments { orders, is_json, campaign: campaign.map(|path| (path, aim)) })
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Orders = Orders {
        of: Kind::Volume,
        first_seed: 0,
        seeds: 1,
        threads: 1,
        stop_at_failure: false,
        trace: false,
    };

    #[test]
    fn a_history_repeats_from_its_seed() {
        for seed in 0..20 {
            let run = || campaign::run_one(Kind::Volume, seed, false);
            assert_eq!(run(), run());
        }
        for seed in 0..5 {
            let run = || campaign::run_one(Kind::Recorder, seed, false);
            assert_eq!(run(), run(), "of the recorder");
        }
    }

    #[test]
    fn a_few_histories_of_the_recorder_keep_every_promise() {
        let orders = Orders { of: Kind::Recorder, seeds: 30, threads: 2, ..QUIET };
        let say = |seed: u64, what: &str| println!("{}", failure(orders.of, (seed, what)));
        let sum = campaign::run(orders, &say);
        assert_eq!(sum.failures, []);
        let counters = &sum.counters;
        assert!(counters.get("recordings") > 90 && counters.get("crashes") > 30);
        assert!(counters.get("recordings judged to the packet") > 10);
        assert!(counters.get("recorder: questions answered") > 100);
    }

    #[test]
    fn a_few_histories_keep_every_promise() {
        let orders = Orders { seeds: 60, threads: 2, ..QUIET };
        let sum =
            campaign::run(orders, &|seed, what| println!("{}", failure(orders.of, (seed, what))));
        assert_eq!(sum.failures, []);
        assert!(sum.counters.get("crashes") > 600 && sum.counters.get("stripes") > 1000);
    }

    #[test]
    fn arguments_are_seeds_and_threads() {
        let check = |text: &str, expected: Result<(u64, u64), &str>| {
            let parsed = parse(text.split_whitespace().map(str::to_owned));
            let parsed = parsed.map(|found| (found.orders.first_seed, found.orders.seeds));
            assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
        };
        check("--seeds 10 --seed 5 --threads 1", Ok((5, 10)));
        check("--seed 7 --json", Ok((7, 1)));
        check("", Err("how many seeds?"));
        check("--seeds", Err("--seeds needs a value"));
        check("--seeds x", Err("x is not a number"));
        check("--seeds 0", Err("at least one seed on one thread"));
        check("--quick", Err("unknown option --quick"));
        check("--campaign f --crashes 9 --seed 3", Ok((3, u64::MAX - 3)));
        check("--campaign f --seeds 9", Ok((0, 9)));
        check("--crashes 9", Err("--crashes is of a --campaign"));
        check("--campaign f --seeds 9 --crashes 9", Err("either --seeds or --crashes"));
    }
}
