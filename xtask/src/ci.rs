//! `cargo xtask ci`: every check in one command, each step with its time, one line at the end.
//!
//! A step that fails does not stop the others. A test that could not run says "not run: reason";
//! all those lines are repeated at the end, so that a skipped test is never silent, and it counts
//! as skipped, not as passed, though its program says `ok`. What failed is repeated, too: the end
//! of a long output is what people have. What passing tests print is read, and not shown.
//!
//! A few failed tests are run once more, one at a time and with nothing beside them: many tests ask
//! a real kernel, and thousands of them at once on a busy machine are no fair question. One that
//! passes then counts as passed, and is named at the end with what it said before.
//!
//! Steps that take samples come last, and none is begun when 36 minutes are over: it is skipped,
//! and said to be. With which of them they begin depends on the commit, so that each has its turn
//! on a slow machine. One of them is what costs more than it tells: the SQL engine is a third of
//! what clippy and rustdoc check of libraries, for one crate of ours; its tests are run with all
//! others.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::SQL;
use crate::{lab, miri, mutants, process, tidy, web};

/// What the steps said, summed.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    /// Tests, and steps, that could not run, or not all of them; none is among those that passed.
    skipped: u64,
    /// Their reasons, of which one test may have several.
    not_run: Vec<String>,
    test_name: String,
    /// Whether the present test is counted as skipped.
    is_skipped: bool,
    /// The tests that were skipped, and how many of them are of test programs that have ended.
    skipped_tests: Vec<String>,
    skipped_before: u64,
    /// The tests that failed in the present step.
    failed_tests: Vec<String>,
    /// Those that passed when they were run alone.
    unsteady: Vec<String>,
    /// The steps that failed, and the first lines of what each failed test said.
    failures: Vec<String>,
    /// How many more lines of the present test are kept.
    lines_left: usize,
    /// Whether the outputs that follow are of failed tests.
    is_failures: bool,
    /// Whether they are of tests that passed.
    is_successes: bool,
}

/// Lines of a failed test that are repeated: its panic, and the beginning of the calls.
const FAILURE_LINES: usize = 12;

/// More failed tests than this are no accident, and are not run again.
const AGAIN_MAX: usize = 4;

/// Tests at a time, for each core: most of them wait, for a kernel, a child or a deadline. The
/// black box used half of two cores when there were four at a time.
const TESTS_A_CORE: usize = 3;

/// Rules of recovery that are left out: each costs a minute.
const SOME_MUTANTS: usize = 2;

/// After this no step of samples is begun: the whole must end on a slow machine, too.
const BEGUN_WITHIN: Duration = Duration::from_mins(36);

/// A step and its name.
type Step = (&'static str, fn(&mut Tally));

/// Steps that take samples.
const SAMPLES: [Step; 7] = [
    ("sim", simulations),
    ("web", page),
    ("lab", |tally| {
        step("lab", tally, |tally| read(tally, &mut lab::command("run", &["--short"])?));
    }),
    ("faults", faults),
    ("mutants", |tally| {
        check("mutants", tally, || mutants::run_some(mutants::SEEDS, SOME_MUTANTS));
    }),
    ("miri", undefined_behaviour),
    ("clippy and doc with SQL", |tally| {
        let with_sql: &[&str] = &["--workspace", "--features", SQL];
        check("clippy with SQL", tally, || clippy(with_sql));
        check("doc with SQL", tally, || doc(with_sql));
    }),
];

/// All of the workspace that does not need the SQL engine.
const WITHOUT_SQL: [&str; 3] = ["--workspace", "--exclude", "sql"];

/// Runs every step; returns whether all passed.
pub(crate) fn run() -> bool {
    let begin = now();
    let mut tally = Tally::default();
    check("fmt", &mut tally, || cargo(&["fmt", "--all", "--check"]));
    check("clippy", &mut tally, || clippy(&WITHOUT_SQL));
    check("tidy", &mut tally, tidy::run);
    check("doc", &mut tally, || doc(&WITHOUT_SQL));
    step("test", &mut tally, |tally| {
        // Skipped tests print why; without this flag the output of a passing test is thrown away.
        let options = ["--show-output", &format!("--test-threads={}", tests_at_a_time())];
        Ok(read(tally, &mut tests(&options))? || passes_alone(tally)?)
    });
    licences(&mut tally);
    check("fuzz", &mut tally, fuzz_targets);
    let (behind, first) = SAMPLES.split_at(first_sample());
    for (name, run) in first.iter().chain(behind) {
        if begin.elapsed() < BEGUN_WITHIN {
            run(&mut tally);
        } else {
            let minutes = BEGUN_WITHIN.as_secs() / 60;
            tally.line(&format!("not run: {name}: the {minutes} minutes to begin it are over"));
        }
    }
    tally.close()
}

/// Another one for each commit.
fn first_sample() -> usize {
    let commit = process::text(&mut process::command("git", &["rev-parse", "HEAD"]));
    let number = commit.ok().and_then(|hash| usize::from_str_radix(hash.get(..8)?, 16).ok());
    number.unwrap_or(0) % SAMPLES.len()
}

/// Lints of some packages, and their features.
fn clippy(packages: &[&str]) -> Result<bool> {
    let lints = ["--all-targets", "--locked", "--", "-D", "warnings"];
    cargo(&[&["clippy"], packages, &lints].concat())
}

/// Comments of some packages, and their features.
fn doc(packages: &[&str]) -> Result<bool> {
    let mut doc = process::cargo(&[&["doc"], packages, &["--no-deps", "--locked"]].concat());
    passes(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Seeded histories of the volume, of its search and of the whole recorder.
fn simulations(tally: &mut Tally) {
    // More than 50 000 crashes.
    let volume: &[&str] = &["--seeds", "2000"];
    let (search, recorder) = (&["--search", "--seeds", "150"], &["--recorder", "--seeds", "500"]);
    for (name, options) in
        [("sim", volume), ("sim of the search", search), ("sim of the recorder", recorder)]
    {
        let run = ["run", "--quiet", "--locked", "--profile", "sim", "-p", "sim", "--"];
        check(name, tally, || cargo(&[&run[..], options].concat()));
    }
}

/// All tests of the workspace, with options of the test programs. Comments have no examples to run:
/// `tidy` sees to it.
fn tests(options: &[&str]) -> Command {
    let tests = ["test", "--workspace", "--all-targets", "--features", SQL, "--no-fail-fast"];
    process::cargo(&[&tests[..], &["--locked", "--"], options].concat())
}

fn tests_at_a_time() -> usize {
    TESTS_A_CORE * std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs a few failed tests again, one at a time; returns whether all passed then.
fn passes_alone(tally: &mut Tally) -> Result<bool> {
    let failed = std::mem::take(&mut tally.failed_tests);
    let count = u64::try_from(failed.len()).expect("as many as were counted");
    // A test program that crashed has named nothing.
    if failed.is_empty() || failed.len() > AGAIN_MAX || tally.failed != count {
        return Ok(false);
    }
    println!("== again, one at a time: {}", failed.join(" "));
    let mut again = Tally::default();
    let names = failed.iter().map(String::as_str);
    let options = ["--exact", "--test-threads=1", "--show-output"].into_iter().chain(names);
    let is_good = read(&mut again, &mut tests(&options.collect::<Vec<_>>()))?;
    Ok(tally.settle(failed, &again) && is_good)
}

/// That they compile. They are run by `cargo fuzz`, with the nightly compiler and the sanitizers
/// that linking them needs.
fn fuzz_targets() -> Result<bool> {
    // Not `--locked`: a new library of a crate need not be entered in this second lock by hand.
    let mut check =
        process::cargo(&["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--bins"]);
    // Nothing is linked, so the engine, which is C++, need not be built.
    passes(check.env("CUSTOM_LIBFUZZER_PATH", "absent/libfuzzer.a"))
}

fn undefined_behaviour(tally: &mut Tally) {
    if let Some(reason) = miri::missing() {
        return tally.line(&format!("not run: miri: {reason}"));
    }
    step("miri", tally, |tally| {
        let results: Result<Vec<bool>> =
            miri::commands().map(|mut command| read(tally, &mut command)).collect();
        Ok(results?.into_iter().all(|is_good| is_good))
    });
}

/// The steps of the page alone, which no counted tests belong to; returns whether all passed.
pub(crate) fn page_alone() -> bool {
    let mut tally = Tally::default();
    page(&mut tally);
    tally.not_run.iter().chain(&tally.failures).for_each(|line| println!("{line}"));
    tally.failed == 0
}

/// The page from its source; the service that it is used with was built by the tests.
fn page(tally: &mut Tally) {
    if let Some(reason) = web::missing() {
        return tally.line(&format!("not run: web: {reason}"));
    }
    check("web", tally, web::check);
    if let Some(reason) = web::no_browser() {
        return tally.line(&format!("not run: web in a browser: {reason}"));
    }
    if let Some(reason) = web::no_firefox() {
        tally.line(&format!("not run: web in Firefox: {reason}"));
    }
    check("web in a browser", tally, web::browse);
}

/// Causes of slowness that are planted here, and what `diagnose` says of them.
fn faults(tally: &mut Tally) {
    if process::text(&mut process::command("id", &["-u"])).is_ok_and(|user| user.trim() == "0") {
        step("faults", tally, |tally| {
            read(tally, &mut lab::command("faults", &["--short", "--again"])?)
        });
    } else {
        tally.line("not run: faults: it needs root");
    }
}

fn licences(tally: &mut Tally) {
    if process::exists("cargo-deny") {
        check("deny", tally, || {
            cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
        });
    } else {
        tally.line("not run: deny: cargo-deny is not installed");
        return;
    }
    match advisory_database() {
        Some(date) => {
            println!("advisories of {date}");
            check("advisories", tally, || cargo(&["deny", "--offline", "check", "advisories"]));
        }
        None => tally.line("not run: advisories: no database; `cargo deny fetch` gets one"),
    }
}

/// When the newest advisory of the database that cargo-deny keeps was published.
fn advisory_database() -> Option<String> {
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home =
        home.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let folders = std::fs::read_dir(home?.join("advisory-dbs")).ok()?.flatten();
    let dates = folders.filter_map(|folder| {
        let mut log = process::command("git", &["log", "-1", "--format=%cs"]);
        process::text(log.current_dir(folder.path())).ok()
    });
    dates.map(|date| date.trim().to_owned()).max()
}

fn cargo(arguments: &[&str]) -> Result<bool> {
    passes(&mut process::cargo(arguments))
}

fn passes(command: &mut Command) -> Result<bool> {
    let name = process::name(command);
    Ok(command.status().with_context(|| format!("cannot run {name}"))?.success())
}

fn check(name: &str, tally: &mut Tally, work: impl FnOnce() -> Result<bool>) {
    step(name, tally, |_| work());
}

/// Runs one step and prints its time. A failed step counts as one failure unless its tests were
/// counted.
fn step(name: &str, tally: &mut Tally, work: impl FnOnce(&mut Tally) -> Result<bool>) {
    println!("== {name}");
    let counted = tally.failed;
    let begin = now();
    let verdict = work(tally);
    if let Err(error) = &verdict {
        println!("{error:#}");
    }
    let is_good = verdict.unwrap_or(false);
    if !is_good && tally.failed == counted {
        tally.failed += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let closing =
        format!("== {name}: {} in {seconds:.1} s", if is_good { "passed" } else { "FAILED" });
    println!("{closing}");
    if !is_good {
        tally.failures.push(closing);
    }
}

#[expect(clippy::disallowed_methods, reason = "a tool measures its own steps")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a command, shows what it says but of tests that passed, and counts their results.
fn read(tally: &mut Tally, command: &mut Command) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run the tests")?;
    let output = child.stdout.take().expect("the output is piped");
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the output of the tests")?;
        let line = String::from_utf8_lossy(&line);
        tally.line(&line);
        if tally.shows(&line) {
            println!("{line}");
        }
    }
    Ok(child.wait().context("cannot wait for the tests")?.success())
}

impl Tally {
    fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|l| l.strip_suffix(" stdout ----"))
        {
            name.clone_into(&mut self.test_name);
            self.is_skipped = false;
            self.lines_left = if self.is_failures { FAILURE_LINES } else { 0 };
        }
        match line {
            "failures:" => (self.is_failures, self.is_successes) = (true, false),
            "successes:" => (self.is_failures, self.is_successes) = (false, true),
            _ if self.is_failures && self.lines_left > 0 && !line.is_empty() => {
                self.lines_left -= 1;
                self.failures.push(line.to_owned());
            }
            _ => {}
        }
        let failed = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        self.failed_tests.extend(failed.map(str::to_owned));
        let is_lab = line.starts_with("lab ") && line.contains(": FAILED after ");
        let is_fault = line.starts_with("faults ")
            && [": MISSED in ", ": WRONG in "].iter().any(|word| line.contains(word));
        if is_lab || is_fault {
            self.failures.push(line.to_owned());
        }
        if let Some(reason) = line.trim_start().strip_prefix("not run: ") {
            self.skip(reason);
        }
        if line.starts_with("test result: ") {
            self.result(line);
        }
    }

    /// Counts the reason why something did not run: the present test, or a step.
    fn skip(&mut self, reason: &str) {
        let name = &self.test_name;
        let separator = if name.is_empty() { "" } else { ": " };
        self.not_run.push(format!("not run: {name}{separator}{reason}"));
        // What failed has failed, whatever it left out before.
        if name.is_empty() {
            self.skipped += 1;
        } else if !self.is_failures && !self.is_skipped {
            self.skipped += 1;
            self.is_skipped = true;
            self.skipped_tests.push(name.clone());
        }
    }

    /// Counts what one test program says of its tests, in which a skipped one has passed.
    fn result(&mut self, line: &str) {
        let skipped = u64::try_from(self.skipped_tests.len()).expect("as many as were counted");
        let of_earlier_programs = self.skipped_before;
        self.skipped_before = skipped;
        self.passed += count(line, " passed").saturating_sub(skipped - of_earlier_programs);
        self.failed += count(line, " failed");
        let ignored = count(line, " ignored");
        if ignored > 0 {
            self.skipped += ignored;
            self.not_run.push(format!("not run: {ignored} ignored tests"));
        }
        (self.is_failures, self.is_successes, self.lines_left) = (false, false, 0);
        self.test_name.clear();
    }

    /// Whether a line, which was counted, is shown: not if it is of a test that passed.
    fn shows(&self, line: &str) -> bool {
        let is_passed = line.starts_with("test ") && line.ends_with(" ... ok");
        !(is_passed || self.is_successes || line.is_empty())
    }

    /// Counts what failed, and was run again, as passed where it passed; returns whether all did.
    fn settle(&mut self, failed: Vec<String>, again: &Tally) -> bool {
        self.failures.extend_from_slice(&again.failures);
        self.not_run.extend_from_slice(&again.not_run);
        let is_steady = |name: &String| again.failed_tests.contains(name);
        let passed = failed.into_iter().filter(|name| !is_steady(name));
        // One that did not come at all has not passed.
        let came = again.passed + u64::try_from(again.skipped_tests.len()).unwrap_or(u64::MAX);
        let passed = passed.take(usize::try_from(came).unwrap_or(usize::MAX));
        for name in passed {
            self.failed -= 1;
            if again.skipped_tests.contains(&name) {
                self.skipped += 1;
                self.unsteady.push(format!("failed, and did not run alone: {name}"));
            } else {
                self.passed += 1;
                self.unsteady.push(format!("failed, and passed alone: {name}"));
            }
        }
        self.failed == 0
    }

    /// Prints what did not run and the closing line; returns whether nothing failed.
    fn close(&self) -> bool {
        for line in self.not_run.iter().chain(&self.failures).chain(&self.unsteady) {
            println!("{line}");
        }
        println!("{}", self.closing_line());
        self.failed == 0 && self.passed > 0
    }

    /// What the project's runner reads.
    fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The number before a word: 3 in "test result: ok. 3 passed; 0 failed".
fn count(line: &str, word: &str) -> u64 {
    let before = line.split(word).next().filter(|before| before.len() < line.len());
    before.and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.line(line);
        }
        tally
    }

    #[test]
    fn the_closing_line_sums_all_test_programs() {
        let result =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        let sum = tally(&[result, "test a ... ok", result]);
        assert_eq!(sum.closing_line(), "24 passed, 6 failed, 0 skipped");
        assert!(!sum.close());
    }

    #[test]
    fn a_run_without_tests_is_not_a_success() {
        assert!(!tally(&[]).close());
        assert!(tally(&["test result: ok. 1 passed; 0 failed; 0 ignored"]).close());
    }

    #[test]
    fn a_skipped_test_is_named_at_the_end() {
        let skipped = tally(&[
            "---- live::stored_equals_sent stdout ----",
            "not run: needs CAP_NET_RAW",
            "test result: ok. 1 passed; 0 failed; 2 ignored",
        ]);
        let expected =
            ["not run: live::stored_equals_sent: needs CAP_NET_RAW", "not run: 2 ignored tests"];
        assert_eq!(skipped.not_run, expected);
        assert_eq!(skipped.closing_line(), "0 passed, 0 failed, 3 skipped");
        assert!(!skipped.close(), "nothing passed");
    }

    #[test]
    fn a_skipped_test_counts_once_and_not_as_passed() {
        let program = [
            "test a ... ok",
            "test b ... ok",
            "test c ... ok",
            "successes:",
            "",
            "---- a stdout ----",
            "not run: no tshark",
            "  not run: no tcpdump",
            "",
            "---- b stdout ----",
            "5 of 5",
            "successes:",
            "    a",
            "    b",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ];
        let sum = tally(&program);
        assert_eq!(sum.closing_line(), "2 passed, 0 failed, 1 skipped");
        assert_eq!(sum.not_run, ["not run: a: no tshark", "not run: a: no tcpdump"]);
        // Of a second test program with a test of the same name.
        assert_eq!(tally(&program.repeat(2)).closing_line(), "4 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_failed_test_that_left_something_out_has_failed() {
        let sum = tally(&[
            "test a ... FAILED",
            "failures:",
            "---- a stdout ----",
            "not run: no tshark",
            "thread 'a' panicked at src/lib.rs:1:1:",
            "failures:",
            "    a",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ]);
        assert_eq!(sum.closing_line(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(sum.not_run, ["not run: a: no tshark"]);
    }

    #[test]
    fn a_step_that_cannot_run_is_skipped_beside_the_tests() {
        let sum = tally(&[
            "successes:",
            "---- a stdout ----",
            "fine",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
            "not run: miri: no nightly compiler",
            "not run: lab crypt: no dm-crypt",
        ]);
        assert_eq!(sum.closing_line(), "1 passed, 0 failed, 2 skipped");
        let expected = ["not run: miri: no nightly compiler", "not run: lab crypt: no dm-crypt"];
        assert_eq!(sum.not_run, expected, "neither is of the last test");
    }

    #[test]
    fn a_failed_case_of_the_lab_is_named_at_the_end() {
        let failed = "lab power-cut: FAILED after 61 s: it did not end";
        let said = tally(&["lab healed: passed in 9 s: what fails comes back", failed]);
        assert_eq!(said.failures, [failed]);
    }

    #[test]
    fn what_a_failed_test_said_is_repeated_and_no_more() {
        let said = tally(&[
            "successes:",
            "---- good stdout ----",
            "thread 'good' panicked as it should",
            "failures:",
            "",
            "---- bad stdout ----",
            "thread 'bad' panicked at src/lib.rs:1:1:",
            "failures:",
            "    bad",
            "test result: FAILED. 1 passed; 1 failed",
            "---- other stdout ----",
            "something",
        ]);
        let expected = ["---- bad stdout ----", "thread 'bad' panicked at src/lib.rs:1:1:"];
        assert_eq!(said.failures[..2], expected);
        assert!(said.failures.iter().all(|line| !line.contains("good") && line != "something"));
    }

    #[test]
    fn what_passing_tests_say_is_not_shown() {
        let mut sum = Tally::default();
        let lines = [
            ("running 2 tests", true),
            ("test good ... ok", false),
            ("test bad ... FAILED", true),
            ("successes:", false),
            ("---- good stdout ----", false),
            ("5 of 5", false),
            ("failures:", true),
            ("---- bad stdout ----", true),
            ("4 of 5", true),
            ("test result: FAILED. 1 passed; 1 failed", true),
        ];
        for (line, is_shown) in lines {
            sum.line(line);
            assert_eq!(sum.shows(line), is_shown, "{line}");
        }
    }

    #[test]
    fn what_passes_alone_is_counted_and_named() {
        let first = [
            "test slow ... FAILED",
            "test wrong ... FAILED",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored",
        ];
        let second = ["test wrong ... FAILED", "test result: FAILED. 1 passed; 1 failed"];
        let mut sum = tally(&first);
        let failed = std::mem::take(&mut sum.failed_tests);
        assert!(!sum.settle(failed, &tally(&second)));
        assert_eq!((sum.passed, sum.failed), (6, 1));
        assert_eq!(sum.unsteady, ["failed, and passed alone: slow"]);

        let mut sum = tally(&first);
        let failed = std::mem::take(&mut sum.failed_tests);
        assert!(!sum.settle(failed, &tally(&["test result: ok. 1 passed; 0 failed"])));
        assert_eq!((sum.passed, sum.failed), (6, 1), "one of them was not found");
    }

    #[test]
    fn what_does_not_run_alone_has_not_passed() {
        let first = ["test slow ... FAILED", "test result: FAILED. 5 passed; 1 failed; 0 ignored"];
        let alone = [
            "successes:",
            "---- slow stdout ----",
            "not run: no loop device is left",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
        ];
        let mut sum = tally(&first);
        let failed = std::mem::take(&mut sum.failed_tests);
        assert!(sum.settle(failed, &tally(&alone)));
        assert_eq!(sum.closing_line(), "5 passed, 0 failed, 1 skipped");
        assert_eq!(sum.not_run, ["not run: slow: no loop device is left"]);
        assert_eq!(sum.unsteady, ["failed, and did not run alone: slow"]);
    }

    #[test]
    fn a_failed_step_counts_once() {
        let mut sum = Tally::default();
        check("fmt", &mut sum, || Ok(false));
        assert_eq!(sum.failed, 1);
        step("test", &mut sum, |sum| {
            sum.line("test result: FAILED. 0 passed; 2 failed");
            Ok(false)
        });
        assert_eq!(sum.failed, 3);
    }
}
