//! `cargo xtask miri`: what is not safe by the compiler's word, and parsers of foreign bytes, run
//! by Miri, which knows every rule of the language and checks each access to memory.
//!
//! Miri runs a thousand times slower than the machine and knows few system calls, so it gets those
//! tests that say something in seconds: all of them take three minutes of a processor. Left out:
//! `index` (Parquet brings C), what maps files or asks the kernel, `statistics` and properties with
//! hundreds of cases.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process;

/// Tests of a crate.
struct Run {
    package: &'static str,
    /// Which of its test programs, then the names that tests begin with; all without.
    tests: &'static [&'static str],
    /// Parts of names of those that take too long.
    skipped: &'static [&'static str],
}

const RUNS: [Run; 14] = [
    run("units", &["--lib"], &[]),
    run("wire", &["--lib"], &[]),
    run("app", &["--lib", "--", "reader", "values"], &[]),
    run(
        "format",
        &["--lib", "--", "field", "slice", "superblock"],
        &["round_trip", "arbitrary", "every_flipped"],
    ),
    run("parity", &["--lib", "--", "field", "solve"], &[]),
    run("session", &["--lib", "--", "key", "wheel"], &[]),
    run("query", &["--lib", "--", "token", "pattern"], &[]),
    // Pools are cut out of the heap: `pool/heap.rs`.
    run("device", &["--lib", "--", "pool", "timeline", "medium"], &["memory_is_found"]),
    run("capture", &["--lib", "--", "live::xdp::umem"], &[]),
    run("capture", &["--test", "untrusted"], &["files_may_hold"]),
    run("host", &["--test", "untrusted"], &["questions_may_come"]),
    run("blockdev", &["--test", "untrusted"], &["disks_may_hold"]),
    run("network", &["--test", "untrusted"], &[]),
    run("observe", &["--test", "untrusted"], &[]),
];

const fn run(
    package: &'static str,
    tests: &'static [&'static str],
    skipped: &'static [&'static str],
) -> Run {
    Run { package, tests, skipped }
}

/// Why it cannot run here; `None` where it can.
pub(crate) fn missing() -> Option<&'static str> {
    let mut probe = command(&["--version"]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = probe.status().is_ok_and(|status| status.success());
    (!is_there).then_some("no nightly with Miri (rustup component add miri --toolchain nightly)")
}

/// One command for each crate.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    RUNS.iter().map(|run| {
        let mut command = command(&["test", "--quiet", "--package", run.package]);
        command.args(run.tests);
        if !run.tests.contains(&"--") {
            command.arg("--");
        }
        command.args(run.skipped.iter().flat_map(|name| ["--skip", name]));
        command
    })
}

/// Runs all of them.
pub(crate) fn run_all() -> Result<bool> {
    if let Some(reason) = missing() {
        bail!("{reason}");
    }
    for mut command in commands() {
        process::run(&mut command)?;
    }
    Ok(true)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = process::command("rustup", &["run", "nightly", "cargo", "miri"]);
    command.args(arguments);
    // As the compiler that runs this program was chosen.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    // Tests read files and clocks of this machine.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    command.env("PROPTEST_CASES", "2");
    command
}
