//! `lab run`: every case in turn, a line each, and the sum.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use host::{SystemClock, TemporaryDirectory};
use units::{Clock, NANOS_PER_SECOND};

use crate::case::{self, Case};
use crate::image::{self, Programs};
use crate::kernel::Kernel;
use crate::machine::{self, Files, Outcome, QEMU, Verdict};
use crate::replay::Replay;
use crate::tools;

const CONSOLE_LINES: usize = 40;
const POINTS_SHORT: usize = 16;
const POINTS: usize = 400;

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Cases by name; all where none is given
    cases: Vec<String>,
    /// Only the cases and the points of a short run
    #[arg(long)]
    short: bool,
    /// The recorder to be tested
    #[arg(long)]
    wirespool: PathBuf,
    /// The folder with the scripts
    #[arg(long, default_value = "lab")]
    scripts: PathBuf,
    /// Power cuts of a replay
    #[arg(long)]
    points: Option<usize>,
    /// Chooses the moments of power cuts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep disks, logs and consoles in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Results in the form that `cargo xtask ci` counts.
#[derive(Default)]
struct Sum {
    passed: u64,
    failed: u64,
}

/// Runs the chosen cases; returns whether none failed.
pub(crate) fn run(flags: &Flags) -> Result<bool> {
    let all = case::all(&flags.scripts.join("cases"))?;
    for name in &flags.cases {
        ensure!(all.iter().any(|case| case.name == *name), "there is no case {name}");
    }
    let is_chosen = |case: &&Case| {
        (flags.cases.is_empty() || flags.cases.contains(&case.name))
            && (!flags.short || case.is_short)
    };
    let cases: Vec<&Case> = all.iter().filter(is_chosen).collect();
    if let Some(reason) = lacking() {
        println!("not run: lab: {reason}");
        return Ok(true);
    }
    let (runnable, lacking): (Vec<&Case>, Vec<&Case>) = cases.into_iter().partition(|case| {
        let needs = case.needs.iter().map(String::as_str);
        image::missing(needs).is_none()
    });
    for case in lacking {
        let needs = case.needs.iter().map(String::as_str);
        println!("not run: lab {}: {}", case.name, image::missing(needs).unwrap_or_default());
    }
    let cache = cache()?;
    let kernel = match Kernel::get(&cache) {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("not run: lab: {error:#}");
            return Ok(true);
        }
    };
    let temporary = TemporaryDirectory::new("wirespool-lab")?;
    let lab = Lab { flags, kernel, folder: temporary.path() };
    lab.run(&runnable)
}

/// Why nothing can run on this machine.
fn lacking() -> Option<String> {
    if tools::find(QEMU).is_none() {
        return Some(format!("{QEMU} is not installed"));
    }
    image::missing(std::iter::empty())
}

fn cache() -> Result<PathBuf> {
    let under = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || under("HOME").map(|home| home.join(".cache"));
    let cache = under("XDG_CACHE_HOME").or_else(home).context("HOME is not set")?;
    Ok(cache.join("wirespool/lab"))
}

/// All that runs have in common.
struct Lab<'a> {
    flags: &'a Flags,
    kernel: Kernel,
    folder: &'a Path,
}

impl Lab<'_> {
    fn run(&self, cases: &[&Case]) -> Result<bool> {
        let programs = Programs {
            wirespool: self.flags.wirespool.clone(),
            lab: std::env::current_exe().context("cannot find the lab's own program")?,
        };
        let initramfs = self.folder.join("initramfs");
        let image = image::build(&self.kernel, &self.flags.scripts, &programs, cases)?;
        fs::write(&initramfs, image).context("cannot write the guest's file system")?;
        let mut sum = Sum::default();
        for case in cases {
            let begin_ns = SystemClock.boottime_ns();
            let folder = self.flags.keep.as_deref().unwrap_or(self.folder).join(&case.name);
            fs::create_dir_all(&folder)?;
            let files =
                Files { kernel: &self.kernel.image, initramfs: &initramfs, folder: &folder };
            let mut outcome = machine::run(case, &files)?;
            if outcome.verdict == Verdict::Pass {
                self.replay(case, &files, &mut outcome)?;
            }
            let seconds = (SystemClock.boottime_ns() - begin_ns) / NANOS_PER_SECOND;
            sum.add(case, &outcome, seconds);
            if let Verdict::Fail(_) = outcome.verdict {
                for file in [files.errors(), files.console()] {
                    for line in machine::last_lines(&file, CONSOLE_LINES) {
                        println!("    | {line}");
                    }
                }
            }
            if self.flags.keep.is_none() {
                fs::remove_dir_all(&folder)?;
            }
        }
        let word = if sum.failed == 0 { "ok" } else { "FAILED" };
        println!("test result: {word}. {} passed; {} failed; 0 ignored", sum.passed, sum.failed);
        Ok(sum.failed == 0)
    }

    /// Replays the log of a case that asks for it.
    fn replay(&self, case: &Case, files: &Files<'_>, outcome: &mut Outcome) -> Result<()> {
        let Some(slices) = case.replay else { return Ok(()) };
        let folder = files.folder.join("replay");
        fs::create_dir_all(&folder)?;
        let points = if self.flags.short { POINTS_SHORT } else { POINTS };
        let replay = Replay {
            log: &files.log(0),
            slices,
            wirespool: &self.flags.wirespool,
            folder,
            points: self.flags.points.unwrap_or(points),
            seed: self.flags.seed,
        };
        match replay.run() {
            Ok(note) => outcome.notes.push(note),
            Err(error) => outcome.verdict = Verdict::Fail(format!("{error:#}")),
        }
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, case: &Case, outcome: &Outcome, seconds: i64) {
        let name = &case.name;
        match &outcome.verdict {
            Verdict::Pass => {
                self.passed += 1;
                println!("lab {name}: passed in {seconds} s: {}", case.title);
            }
            Verdict::Fail(reason) => {
                self.failed += 1;
                println!("lab {name}: FAILED after {seconds} s: {reason}");
            }
            Verdict::Lack(reason) => println!("not run: lab {name}: {reason}"),
        }
        for note in &outcome.notes {
            println!("    {note}");
        }
    }
}
