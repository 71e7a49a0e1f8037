//! `cargo xtask mutants`: takes the rules of recovery out of the volume, one at a time, and counts
//! the seeds until the simulation notices.
//!
//! Each file in `mutants` of the crate sim is one rule: what it says, a file of the production
//! code, the text that obeys it, and the text without it. Where histories hardly come to what a
//! rule is for, the file names a test that shows it. The change is made in a copy of the tree:
//! production code has no switches. A mutant that lives is a negative verdict, unless its file says
//! why it does no harm. `tidy` checks that each text is found exactly once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tidy::PARTS;
use crate::{process, sources};

/// Where the mutants are.
pub(crate) const FOLDER: &str = "crates/proof/sim/mutants/";

/// Histories in which each mutant must be caught.
pub(crate) const SEEDS: u64 = 2000;

/// Seconds after which a simulation has met a history that does not end, and a test does not end.
const ENDLESS_SECONDS: &str = "1200";
const ENDLESS_TEST_SECONDS: &str = "300";
/// What `timeout` says then.
const TIMED_OUT: i32 = 124;

/// What became of a mutant.
enum Fate {
    /// The simulation failed after so many histories.
    Caught(u64),
    /// The test that is named failed.
    CaughtByTest,
    /// It did not end.
    Endless,
    Lives,
}

/// A rule left out.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    rule: String,
    file: String,
    /// Histories of the whole recorder show it, not those of the volume alone.
    is_of_recorder: bool,
    /// The test that shows it, or a file of tests: a package, `--lib` or `--test FILE`, and the
    /// name of the test.
    test: Option<String>,
    /// Why nothing breaks without it.
    harmless: Option<String>,
    old: String,
    new: String,
}

impl Mutant {
    fn parse(name: &str, text: &str) -> Result<Self> {
        let (header, rest) = text.split_once("--- old\n").context("no line `--- old`")?;
        let (old, new) = rest.split_once("\n--- new\n").context("no line `--- new`")?;
        let field = |name: &str| {
            let mut lines = header.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        Ok(Self {
            name: name.to_owned(),
            rule: field("rule").context("no `rule: `")?,
            file: field("file").context("no `file: `")?,
            is_of_recorder: field("of").is_some_and(|of| of == "recorder"),
            test: field("test"),
            harmless: field("harmless"),
            old: old.to_owned(),
            new: new.strip_suffix('\n').unwrap_or(new).to_owned(),
        })
    }

    /// The production file without the rule.
    fn apply(&self, text: &str) -> Result<String> {
        let count = text.matches(&self.old).count();
        if count != 1 {
            bail!("{}: its old text occurs {count} times in {}, not once", self.name, self.file);
        }
        Ok(text.replacen(&self.old, &self.new, 1))
    }
}

/// Findings for `tidy`: a mutant whose place in the code has moved. `text_of` gives a file's text.
pub(crate) fn check<'a>(
    paths: impl Iterator<Item = &'a str>,
    text_of: &dyn Fn(&str) -> Option<&'a str>,
) -> Vec<String> {
    let mutants = paths.filter(|path| path.starts_with(FOLDER));
    let finding = |path: &str| {
        let checked = Mutant::parse(path, text_of(path)?).and_then(|mutant| {
            mutant.apply(text_of(&mutant.file).unwrap_or_default())?;
            mutant.test.as_deref().map_or(Ok(()), |test| check_test(test, text_of))
        });
        checked.err().map(|error| format!("{path}: {error:#}"))
    };
    mutants.filter_map(finding).collect()
}

/// The test that a mutant names must be there: `cargo test` passes where it finds none.
fn check_test<'a>(test: &str, text_of: &dyn Fn(&str) -> Option<&'a str>) -> Result<()> {
    let words: Vec<&str> = test.split(' ').collect();
    let (roots, name) = match words[..] {
        [_, "--lib", name] => (vec!["src/".to_owned()], Some(name)),
        [_, "--test", file] => (vec![format!("tests/{file}")], None),
        [_, "--test", file, name] => {
            let roots = [format!("tests/{file}"), format!("tests/{file}/"), "tests/".to_owned()];
            (roots.to_vec(), Some(name))
        }
        _ => bail!("`{test}` is not PACKAGE --lib NAME or PACKAGE --test FILE [NAME]"),
    };
    let modules: Vec<&str> = name.map(|name| name.split("::").collect()).unwrap_or_default();
    let (function, modules) = match modules.split_last() {
        Some((function, modules)) => (format!("fn {function}()"), modules),
        None => ("#[test]".to_owned(), &[][..]),
    };
    // The test lies in the file of its module, or in that of the module around it.
    let depths = [modules.len(), modules.len().saturating_sub(1)];
    let places = roots.iter().flat_map(|root| {
        depths.map(|depth| format!("{root}{}", modules.get(..depth).unwrap_or_default().join("/")))
    });
    let files = places.flat_map(|place| {
        let place = place.trim_end_matches('/');
        [format!("{place}.rs"), format!("{place}/mod.rs"), format!("{place}/main.rs")]
    });
    let package = words.first().copied().unwrap_or_default();
    let folders = PARTS.map(|part| format!("crates/{part}/{package}"));
    let mut files =
        files.flat_map(|file| folders.each_ref().map(|folder| format!("{folder}/{file}")));
    if !files.any(|file| text_of(&file).is_some_and(|text| text.contains(&function))) {
        bail!("there is no test `{test}`");
    }
    Ok(())
}

/// Runs every mutant whose name contains one of `only`, or all, each with up to `seeds` histories.
pub(crate) fn run(seeds: u64, only: &[&str]) -> Result<bool> {
    let is_meant =
        |mutant: &&Mutant| only.is_empty() || only.iter().any(|it| mutant.name.contains(it));
    run_these(seeds, &load()?.iter().filter(is_meant).collect::<Vec<_>>())
}

/// Runs so many of those that the simulation shows, others with each commit. It lies built beside;
/// for one that a test shows, each library would be built once more.
pub(crate) fn run_some(seeds: u64, count: usize) -> Result<bool> {
    let commit = process::text(&mut process::command("git", &["rev-parse", "HEAD"]))?;
    let turn = commit.get(..7).and_then(|hash| usize::from_str_radix(hash, 16).ok());
    let (all, turn) = (load()?, turn.context("git names no commit")?);
    let mut some: Vec<&Mutant> = all.iter().filter(|mutant| mutant.test.is_none()).collect();
    let first = turn.checked_rem(some.len()).context("the simulation shows none")?;
    some.rotate_left(first);
    some.truncate(count);
    run_these(seeds, &some)
}

fn run_these(seeds: u64, mutants: &[&Mutant]) -> Result<bool> {
    let tree = begin()?;
    let mut lived = 0;
    for mutant in mutants {
        let verdict = match (try_one(&tree, mutant, seeds)?, &mutant.harmless) {
            (Fate::Caught(seed), _) => format!("caught by seed {seed} of {seeds}"),
            (Fate::CaughtByTest, _) => "caught by its test".to_owned(),
            (Fate::Endless, _) => "caught: it does not end".to_owned(),
            (Fate::Lives, Some(reason)) => format!("lives: {reason}"),
            (Fate::Lives, None) => {
                lived += 1;
                "LIVES".to_owned()
            }
        };
        println!("{:<36} {:<66} {verdict}", mutant.name, mutant.rule);
    }
    println!("{lived} mutants lived that should not");
    Ok(lived == 0)
}

/// A copy of the tree, with what is built of the simulator: a mutant builds only what it changes.
/// What an earlier mutant has left is gone. All lies beside other output of builds.
fn begin() -> Result<PathBuf> {
    let folder = process::target_folder().join("mutants");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let tree = folder.join("tree");
    sources::copy(".", &tree)?;
    let simulator = process::target_folder().join("sim");
    if simulator.exists() {
        fs::create_dir_all(folder.join("build"))?;
        let to = folder.join("build/sim").display().to_string();
        process::run(&mut process::command("cp", &["-a", &simulator.display().to_string(), &to]))?;
    }
    Ok(tree)
}

fn load() -> Result<Vec<Mutant>> {
    let folder = process::root().join(FOLDER);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&folder).context("no mutants")? {
        paths.push(entry?.path());
    }
    paths.sort();
    let load = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path)?;
        Mutant::parse(&name, &text).with_context(|| path.display().to_string())
    };
    paths.iter().map(load).collect()
}

fn try_one(tree: &Path, mutant: &Mutant, seeds: u64) -> Result<Fate> {
    let file = tree.join(&mutant.file);
    let text = fs::read_to_string(&file).with_context(|| mutant.file.clone())?;
    fs::write(&file, mutant.apply(&text)?)?;
    let fate = match &mutant.test {
        Some(shown_by) => run_test(tree, shown_by),
        None => simulate(tree, mutant, seeds),
    };
    let fate = fate.with_context(|| format!("mutant {}", mutant.name));
    fs::write(&file, text)?;
    fate
}

/// Cargo in the tree of the mutant, with the flags that libraries are built with here.
fn cargo_in(tree: &Path, arguments: &[&str]) -> Command {
    let mut cargo = process::cargo(arguments);
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", tree.with_file_name("build"));
    cargo
}

/// Builds what runs the mutant. It may leave something unused: warnings are shown only with errors.
fn build(cargo: &mut Command) -> Result<()> {
    let built = cargo.output().context("cannot run cargo")?;
    if !built.status.success() {
        bail!("it does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
    }
    Ok(())
}

fn run_test(tree: &Path, test: &str) -> Result<Fate> {
    let arguments: Vec<&str> =
        ["test", "--quiet", "--locked", "-p"].into_iter().chain(test.split(' ')).collect();
    build(&mut cargo_in(tree, &[&arguments[..], &["--no-run"]].concat()))?;
    let cargo = cargo_in(tree, &[&arguments[..], &["--", "--exact"]].concat());
    let mut within = Command::new("timeout");
    within.arg(ENDLESS_TEST_SECONDS).arg(cargo.get_program()).args(cargo.get_args());
    within.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = within.current_dir(tree).output().context("cannot run cargo")?;
    if ran.status.code() == Some(TIMED_OUT) {
        return Ok(Fate::Endless);
    }
    judge(test, ran.status.success(), &String::from_utf8_lossy(&ran.stdout))
}

/// What a run of tests says: only one that ran and passed has not noticed.
fn judge(test: &str, is_success: bool, output: &str) -> Result<Fate> {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = results.flat_map(|line| line.split(['.', ';']));
    let passed: u64 =
        counts.filter_map(|count| count.trim().strip_suffix(" passed")?.parse::<u64>().ok()).sum();
    match (is_success, passed) {
        (true, 0) => bail!("there is no test `{test}`"),
        (true, _) => Ok(Fate::Lives),
        (false, _) => Ok(Fate::CaughtByTest),
    }
}

fn simulate(tree: &Path, mutant: &Mutant, seeds: u64) -> Result<Fate> {
    build(&mut cargo_in(tree, &["build", "--locked", "--profile", "sim", "-p", "sim"]))?;
    let mut sim = Command::new("timeout");
    sim.arg(ENDLESS_SECONDS).arg(tree.with_file_name("build").join("sim/sim"));
    sim.args(mutant.is_of_recorder.then_some("--recorder"));
    sim.args(["--seeds", &seeds.to_string(), "--stop-at-failure", "--json"]);
    let output = sim.output().context("cannot run the simulation")?;
    if output.status.code() == Some(TIMED_OUT) {
        return Ok(Fate::Endless);
    }
    let report: Value = serde_json::from_slice(&output.stdout).context("no report")?;
    let caught = report.get("failures").and_then(|failures| failures.get(0)).is_some();
    let seeds = report.get("seeds").and_then(Value::as_u64).filter(|_| caught);
    Ok(seeds.map_or(Fate::Lives, Fate::Caught))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rule: a\nfile: x.rs\n--- old\none\n--- new\ntwo\n";

    #[test]
    fn a_mutant_changes_the_one_place_that_it_names() {
        let mutant = Mutant::parse("m", TEXT).unwrap();
        assert_eq!(mutant.apply("zero one three").unwrap(), "zero two three");
        assert!(mutant.apply("one one").is_err() && mutant.apply("").is_err());
    }

    #[test]
    fn only_tests_that_ran_and_passed_have_not_noticed() {
        let passed = |count: u64| format!("test result: ok. {count} passed; 0 failed; 0 ignored");
        for count in [1, 8, 11] {
            let output = format!("{}\n\n{}\n", passed(0), passed(count));
            assert!(matches!(judge("t", true, &output), Ok(Fate::Lives)), "{output}");
        }
        let failed = "test result: FAILED. 10 passed; 1 failed; 0 ignored";
        assert!(matches!(judge("t", false, failed), Ok(Fate::CaughtByTest)));
        for none in ["", "test result: ok. 0 passed; 0 failed; 0 ignored"] {
            assert!(judge("t", true, none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_test_that_a_mutant_names_must_be_there() {
        let text_of = |path: &str| match path {
            "crates/base/a/src/one/tests.rs" => Some("fn in_a_file() {}"),
            "crates/base/a/src/one/two.rs" => Some("mod tests { fn in_a_module() {} }"),
            "crates/base/a/tests/three.rs" => Some("#[test] fn alone() {}"),
            "crates/base/a/tests/many/main.rs" => Some("mod four;"),
            "crates/base/a/tests/many/four.rs" => Some("fn among_many() {}"),
            _ => None,
        };
        for there in [
            "a --lib one::tests::in_a_file",
            "a --lib one::two::tests::in_a_module",
            "a --test three",
            "a --test three alone",
            "a --test many four::among_many",
        ] {
            check_test(there, &text_of).unwrap();
        }
        for gone in [
            "a --lib one::tests::gone",
            "a --lib in_a_file",
            "a --test three gone",
            "a --test gone",
            "a --test many four::gone",
            "a",
        ] {
            assert!(check_test(gone, &text_of).is_err(), "{gone}");
        }
    }

    #[test]
    fn a_mutant_whose_place_is_gone_is_a_finding() {
        let path = concat!("crates/proof/sim/mutants/", "m.txt");
        let findings = |code: &'static str| {
            check([path].into_iter(), &|name| Some(if name == path { TEXT } else { code }))
        };
        assert_eq!(findings("one").len(), 0);
        assert_eq!(findings("none at all, once and one").len(), 1);
    }
}
