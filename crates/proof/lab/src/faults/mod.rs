//! `lab faults`: plants causes of slowness on this machine, one at a time and in pairs, and judges
//! what `wirespool diagnose` says of each.

mod judge;
mod outcome;
mod situation;
mod table;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use host::SystemClock;
use serde_json::Value;
use units::{Clock, NANOS_PER_SECOND, Random};

use judge::{Found, Verdict};
use outcome::Outcome;
use situation::{Begun, Situation};

/// What to plant.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Situations by name; all where none is given
    situations: Vec<String>,
    /// Only those of a short run
    #[arg(long)]
    short: bool,
    /// So many pairs besides, chosen by the seed
    #[arg(long, default_value_t = 0)]
    pairs: usize,
    /// Chooses the pairs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Look once more where a report does not name the cause: other programs disturb
    #[arg(long)]
    again: bool,
    /// Leave out findings of these kinds, which the machine has by itself
    #[arg(long)]
    ignore: Vec<String>,
    /// Write the table of results, in Markdown, to this file
    #[arg(long)]
    table: Option<PathBuf>,
    /// Show all findings of each report
    #[arg(long)]
    verbose: bool,
    /// The program to be tested
    #[arg(long)]
    wirespool: PathBuf,
    /// The folder with the scripts
    #[arg(long, default_value = "lab/faults")]
    scripts: PathBuf,
}

/// Runs what was chosen; returns whether no wrong cause stood first and none was missed.
pub(crate) fn run(flags: &Flags) -> Result<bool> {
    let all = situation::all(&flags.scripts)?;
    for name in &flags.situations {
        ensure!(all.iter().any(|it| it.name == *name), "there is no situation {name}");
    }
    let is_chosen = |it: &&Situation| {
        (flags.situations.is_empty() || flags.situations.contains(&it.name))
            && (!flags.short || it.is_short)
    };
    let chosen: Vec<&Situation> = all.iter().filter(is_chosen).collect();
    let mut results = Vec::new();
    let alone = chosen.iter().map(|situation| vec![*situation]);
    for (number, planted) in alone.chain(pairs(&chosen, flags)).enumerate() {
        let mut outcome = one(flags, &planted, number)?;
        let is_named = |it: &Outcome| it.verdict == Verdict::Named;
        if flags.again && outcome.as_ref().is_some_and(|it| !is_named(it)) {
            outcome = one(flags, &planted, number)?.or(outcome);
        }
        results.extend(outcome);
    }
    if let Some(path) = &flags.table {
        let text = table::markdown(&chosen, &results);
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(sum(&results))
}

/// Pairs of different situations with a cause, looked at in the same way.
fn pairs<'a>(chosen: &[&'a Situation], flags: &Flags) -> Vec<Vec<&'a Situation>> {
    let with_cause: Vec<&Situation> =
        chosen.iter().copied().filter(|it| !it.findings.is_empty() && it.look.is_empty()).collect();
    let mut all: Vec<Vec<&Situation>> = Vec::new();
    for (at, one) in with_cause.iter().enumerate() {
        all.extend(with_cause.iter().skip(at + 1).map(|other| vec![*one, *other]));
    }
    let mut random = Random::new(flags.seed);
    let mut keyed: Vec<_> = all.into_iter().map(|pair| (random.next(), pair)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().take(flags.pairs).map(|(_, pair)| pair).collect()
}

/// Plants one or two situations, looks, and takes them away; `None` where the machine cannot host
/// them.
fn one(flags: &Flags, planted: &[&Situation], number: usize) -> Result<Option<Outcome>> {
    let names: Vec<String> = planted.iter().map(|it| it.name.clone()).collect();
    let label = names.join(" + ");
    let begun_ns = SystemClock.boottime_ns();
    let mut there = Vec::new();
    let mut lack = None;
    for situation in planted {
        match situation.plant(number)? {
            Begun::Ready(it) => there.push(it),
            Begun::Skipped(reason) => lack = Some(format!("not run: faults {label}: {reason}")),
            Begun::Failed(reason) => {
                lack = Some(format!("not run: faults {label}: it could not be planted: {reason}"));
            }
        }
        if lack.is_some() {
            break;
        }
    }
    let process = there.iter().find_map(|it| it.process.clone());
    let report = match &lack {
        None => Some(look(flags, planted, process.as_deref())),
        Some(_) => None,
    };
    for it in there {
        if let Err(error) = it.remove() {
            println!("faults {label}: something stayed behind: {error:#}");
        }
    }
    if let Some(line) = lack {
        println!("{line}");
        return Ok(None);
    }
    let mut report = judge::findings(&report.context("nothing was looked at")??);
    report.retain(|found| {
        let is_planted = planted.iter().any(|it| it.findings.contains(&found.kind));
        is_planted || !flags.ignore.contains(&found.kind)
    });
    let verdict = judge::judge(planted, &report);
    let found = judge::named(planted, &report);
    let seconds = (SystemClock.boottime_ns() - begun_ns) / NANOS_PER_SECOND;
    let shown: Vec<&Found> = report.iter().filter(|found| found.severity != "note").collect();
    let first = shown.first().map(|found| (*found).clone()).or_else(|| report.first().cloned());
    let says = first.as_ref().map_or("nothing found", |found| &found.what);
    println!("faults {label}: {} in {seconds} s: {says}", verdict.word());
    if flags.verbose || verdict != Verdict::Named {
        for found in &report {
            println!("    {} {}: {}", found.severity, found.kind, found.what);
        }
    }
    Ok(Some(Outcome { names, verdict, named: found, first }))
}

/// The report of `wirespool diagnose`.
fn look(flags: &Flags, planted: &[&Situation], process: Option<&str>) -> Result<Value> {
    let seconds = planted.iter().map(|it| it.seconds).max().unwrap_or_default();
    let mut command = Command::new(&flags.wirespool);
    command.arg("diagnose");
    let look = planted.iter().flat_map(|it| &it.look);
    command.args(look.map(|word| word.replace("$PID", process.unwrap_or_default())));
    command.args(["--for", &format!("{seconds}s"), "--json"]);
    let output = command.output().context("cannot run wirespool")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no report: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Prints how often which verdict was given; whether all is well.
fn sum(results: &[Outcome]) -> bool {
    let count = |of: &[Verdict]| results.iter().filter(|it| of.contains(&it.verdict)).count();
    let (named, later) = (count(&[Verdict::Named]), count(&[Verdict::Later]));
    let (missed, wrong) = (count(&[Verdict::Missed]), count(&[Verdict::Wrong]));
    let both = results.iter().filter(|it| it.names.len() == 2);
    let (pairs, full) = both.fold((0_usize, 0_usize), |(pairs, full), it| {
        (pairs + 1, full + usize::from(it.named == 2))
    });
    println!(
        "{} situations and pairs: the first finding names the cause of {named}, a later one of \
         {later}; missed {missed}, wrong first {wrong}; of {pairs} pairs both are named in {full}",
        results.len()
    );
    let failed = missed + wrong;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {} passed; {failed} failed; 0 ignored", named + later);
    failed == 0
}
