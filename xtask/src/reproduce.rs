//! `cargo xtask reproduce`: whether two builds of one commit give the same bytes.
//!
//! The commit is checked out into two folders whose paths differ in name and length, each is built
//! with a folder of build output of its own, and what came out is compared byte by byte. Paths of
//! the machine must not get into the binaries ([`flags`]). `--sample` builds a small program with C
//! and assembler in it instead of the packages: minutes instead of an hour.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{command, root, run as run_command, target_folder};

/// What is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The packages, as `cargo xtask release` makes them.
    Packages,
    /// One example of `encryption`, which links C and assembler.
    Sample,
}

/// What takes the places of the machine's paths, where binaries name source files.
const SOURCE: &str = "/usr/src/wirespool";
const LIBRARIES: &str = "/usr/src/cargo";

/// Flags of the compilers, Rust's and C's, for sources that lie in `checkout`.
pub(crate) fn flags(checkout: &Path) -> Result<[(&'static str, String); 2]> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").context("no HOME")?).join(".cargo"),
    };
    let (here, home) = (checkout.display(), home.display());
    let rust = [
        format!("--remap-path-prefix={here}={SOURCE}"),
        format!("--remap-path-prefix={home}={LIBRARIES}"),
    ];
    let c = format!("-ffile-prefix-map={here}={SOURCE} -ffile-prefix-map={home}={LIBRARIES}");
    // Paths may have spaces: this form separates the flags by a character that none has.
    Ok([("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}")), ("CFLAGS", c)])
}

/// Builds twice and compares; true when each file is the same.
pub(crate) fn run(extent: Extent) -> Result<bool> {
    let status = command("git", &["status", "--porcelain", "--untracked-files=no"]);
    let changed = crate::process::text(&mut { status })?;
    ensure!(changed.trim().is_empty(), "commit first: what is compared is the last commit");
    let place = target_folder().join("reproduce");
    if place.exists() {
        fs::remove_dir_all(&place).context("cannot empty the folder")?;
    }
    let names = ["one", "a-second-folder-with-a-longer-name"];
    let built: Vec<Vec<PathBuf>> =
        names.iter().map(|name| build(&place.join(name), extent)).collect::<Result<_>>()?;
    let (Some(first), Some(second)) = (built.first(), built.last()) else {
        unreachable!("two were built")
    };
    let mut is_same = first.len() == second.len();
    for (one, other) in first.iter().zip(second) {
        let name = one.file_name().unwrap_or_default().to_string_lossy();
        let [one, other] = [one, other].map(|path| fs::read(path).context("a file is gone"));
        let (one, other) = (one?, other?);
        let differs = one.iter().zip(&other).position(|(a, b)| a != b);
        match differs.or((one.len() != other.len()).then_some(one.len().min(other.len()))) {
            None => println!("same: {name}, {} bytes", one.len()),
            Some(at) => {
                println!("OTHER: {name}, from byte {at} on");
                is_same = false;
            }
        }
    }
    Ok(is_same)
}

/// Builds in a clone of its own; gives the files to compare, by name.
fn build(place: &Path, extent: Extent) -> Result<Vec<PathBuf>> {
    let (source, output) = (place.join("source"), place.join("output"));
    fs::create_dir_all(place).context("cannot create a folder")?;
    let mut clone = command("git", &["clone", "--quiet", "--shared"]);
    run_command(clone.arg(root()).arg(&source))?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut work = Command::new(cargo);
    work.current_dir(&source).env("CARGO_TARGET_DIR", &output).envs(flags(&source)?);
    match extent {
        Extent::Packages => work.args(["xtask", "release"]),
        Extent::Sample => {
            work.args(["build", "--release", "--locked", "--package", "encryption", "--examples"])
        }
    };
    run_command(&mut work)?;
    let folder = match extent {
        Extent::Packages => source.join("dist"),
        Extent::Sample => output.join("release/examples"),
    };
    let entries = fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.context("cannot list")?.path();
        // Beside an example lie its hard link with a hash in its name and the list of its sources.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if extent == Extent::Packages || (!name.contains('-') && !name.contains('.')) {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "nothing was built in {}", folder.display());
    Ok(files)
}
