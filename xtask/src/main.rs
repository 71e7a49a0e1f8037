//! Commands for developers: `cargo xtask tidy`, `ci`, `miri`, `mutants`, `release`, `sbom`,
//! `reproduce`, `fresh`, `lab`, `faults`, `web`, `engine`.
//!
//! Plain programs in place of shell: each command prints what it does, and its exit status is the
//! verdict. What a contributor runs and what the runner of `.ci/run` runs is the same command.
#![expect(clippy::print_stdout, reason = "a tool for the terminal: what it prints is its result")]

mod ci;
mod engine;
mod fresh;
mod installed;
mod lab;
mod miri;
mod mutants;
mod process;
mod release;
mod reproduce;
mod sbom;
mod sources;
mod tidy;
mod web;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  tidy                   check the rules that the compiler cannot see
  tidy --circles         list the uses that make circles of files within a crate
  tidy --draw            draw docs/structure.svg, the picture of the crates, from the table of rows
  ci                     format, clippy, tidy, doc, tests, licences, fuzz targets; then samples:
                         simulation, page, lab, situations, mutants, Miri
  miri                   tests of memory and of parsers under Miri (needs nightly with it)
  mutants [NAME...]      take out each rule of recovery, or those named so, and simulate
  mutants --some COUNT   the same with so many of them, others with each commit
  release [--target T] [--sign KEYFILE]  binary, manual pages, completions, Debian package, tarball,
                         list of libraries, checksums in dist/, signed with a key of OpenSSH
  sbom                   print the libraries in the packages, as CycloneDX
  reproduce [--sample]   build the packages, or a small program, twice and compare byte by byte
  fresh [--debian]       follow the README in a fresh clone with an empty home directory,
                         or in an empty Debian root (needs root and debootstrap)
  web                    build the page in web/ and put it into web/dist (needs Node)
  web --check            what ci does with the page, with the program in debug/
  engine                 download Trino once (821 MB), and compare what it finds in an archive
                         with what find shows
  lab [--short] [CASE...]  the recorder on failing disks in a virtual machine (lab/README.md)
  faults [--short] [--pairs N] [--table FILE] [NAME...]
                         causes of slowness, planted on this machine, and what diagnose says
                         of each (lab/faults/README.md; needs root)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let verdict = match *arguments.as_slice() {
        ["tidy"] => tidy::run(),
        ["tidy", "--circles"] => tidy::run_circles(),
        ["tidy", "--draw"] => tidy::run_draw(),
        ["ci"] => Ok(ci::run()),
        ["miri"] => miri::run_all(),
        ["mutants", "--some", count] => match count.parse() {
            Ok(count) => mutants::run_some(mutants::SEEDS, count),
            Err(_) => Err(anyhow::anyhow!("not a number: {count}")),
        },
        ["mutants", ref only @ ..] => mutants::run(mutants::SEEDS, only),
        ["release"] => release::run(None, None),
        ["release", "--target", target] => release::run(Some(target), None),
        ["release", "--sign", key] => release::run(None, Some(key)),
        ["release", "--target", target, "--sign", key] => release::run(Some(target), Some(key)),
        ["sbom"] => sbom::run(),
        ["reproduce"] => reproduce::run(reproduce::Extent::Packages),
        ["reproduce", "--sample"] => reproduce::run(reproduce::Extent::Sample),
        ["lab", ref arguments @ ..] => lab::run("run", arguments),
        ["faults", ref arguments @ ..] => lab::run("faults", arguments),
        ["engine"] => engine::check(),
        ["web"] => web::build(),
        ["web", "--check"] => Ok(ci::page_alone()),
        ["fresh"] => fresh::run(fresh::Place::EmptyHome),
        ["fresh", "--debian"] => fresh::run(fresh::Place::DebianRoot),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    exit_code(verdict)
}

/// 0 when all is well, 1 when the verdict is negative, 3 when the command could not do its work.
fn exit_code(verdict: Result<bool>) -> ExitCode {
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            println!("{error:#}");
            ExitCode::from(3)
        }
    }
}
