//! The result of a campaign as text and as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::ledger::Ledger;
use crate::orders::{Kind, Orders};
use crate::probes;
use crate::sum::Sum;
use crate::took::Took;

/// What stands in front: the promises.
const FIRST: [&str; 4] = ["crashes", "mounts", "stripes", "stripes acknowledged"];

/// Prints the sums.
pub(crate) fn print(sum: &Sum, orders: Orders, took: Took, out: &mut dyn Write) -> io::Result<()> {
    let wrong = sum.failures.iter().filter(|(_, what)| what.contains("WRONG BYTES")).count();
    let lost = sum.failures.iter().filter(|(_, what)| what.contains("LOST")).count();
    writeln!(out, "{:>12} seeds, from {}", sum.seeds, orders.first_seed)?;
    for name in FIRST {
        writeln!(out, "{:>12} {name}", sum.counters.get(name))?;
    }
    writeln!(out, "{:>12} failed: {lost} lost, {wrong} wrong bytes", sum.failures.len())?;
    writeln!(out, "{:>12.0} crashes a second of one core", rate(sum, took))?;
    let Took { wall_s, cpu_s } = took;
    writeln!(out, "{wall_s:>12.1} s on {} threads, {cpu_s:.1} s of processors", orders.threads)?;
    for (name, count) in sum.counters.all().filter(|(name, _)| !FIRST.contains(name)) {
        writeln!(out, "{count:>12} {name}")?;
    }
    print_probes(orders.of, sum, out)?;
    writeln!(out, "digest {:016x}", sum.digest)
}

fn print_probes(of: Kind, sum: &Sum, out: &mut dyn Write) -> io::Result<()> {
    for probes::TooRare { name, count, least } in probes::missing(of, sum) {
        writeln!(out, "REACHED TOO RARELY: {name}: {count} times, at least {least} expected")?;
    }
    Ok(())
}

/// A campaign as one table of Markdown, and the failures behind it.
pub(crate) fn print_table(of: Kind, ledger: &Ledger, out: &mut dyn Write) -> io::Result<()> {
    let Ledger { sum, took, first_seed, builds, .. } = ledger;
    let (first, count) = (first_seed.unwrap_or(0), sum.seeds);
    let with = |word: &str| sum.failures.iter().filter(|(_, what)| what.contains(word)).count();
    let (lost, wrong) = (with("LOST"), with("WRONG BYTES"));
    writeln!(out, "| {count} seeds from {first}, {} builds | |", builds.len())?;
    writeln!(out, "|---|---:|")?;
    writeln!(out, "| histories that failed | {} |", sum.failures.len())?;
    writeln!(out, "| of them lost, wrong bytes | {lost}, {wrong} |")?;
    writeln!(out, "| crashes a second of one core | {:.0} |", rate(sum, *took))?;
    writeln!(out, "| processor hours | {:.2} |", took.cpu_s / 3600.0)?;
    let first = FIRST.map(|name| (name, sum.counters.get(name)));
    let others = sum.counters.all().filter(|(name, _)| !FIRST.contains(name));
    for (name, count) in first.into_iter().chain(others) {
        writeln!(out, "| {name} | {count} |")?;
    }
    writeln!(out, "| digest | {:016x} |", sum.digest)?;
    print_probes(of, sum, out)
}

/// The same for programs.
pub(crate) fn json(sum: &Sum, orders: Orders, took: Took) -> Value {
    let counts: Map<String, Value> =
        sum.counters.all().map(|(name, count)| (name.to_owned(), json!(count))).collect();
    let failures: Vec<Value> =
        sum.failures.iter().map(|(seed, what)| json!({"seed": seed, "what": what})).collect();
    let too_rare: Vec<&str> =
        probes::missing(orders.of, sum).into_iter().map(|probe| probe.name).collect();
    json!({
        "first_seed": orders.first_seed,
        "seeds": sum.seeds,
        "threads": orders.threads,
        "seconds": took.wall_s,
        "cpu_seconds": took.cpu_s,
        "crashes_per_cpu_second": rate(sum, took),
        "digest": format!("{:016x}", sum.digest),
        "counts": counts,
        "failures": failures,
        "reached_too_rarely": too_rare,
    })
}

fn rate(sum: &Sum, took: Took) -> f64 {
    let crashes = u32::try_from(sum.counters.get("crashes")).map_or(f64::INFINITY, f64::from);
    crashes / took.cpu_s
}
