//! `cargo xtask fresh`: the README followed to the letter where nothing is set up.
//!
//! The commands are those of the section "Quick start", in a clone of the last commit. Either on
//! this machine with an empty home directory, so that only what lies on PATH helps; or in an empty
//! Debian root, where even the compiler must come from Debian. The second needs root and
//! debootstrap; its mounts live in a namespace that ends with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{command, root, run as run_command};

const SECTION: &str = "## Quick start";
const RELEASE: &str = "bookworm";
const MIRROR: &str = "http://deb.debian.org";
/// Debian's installer sets up these three.
const SUITES: [(&str, &str); 3] =
    [("debian", ""), ("debian", "-updates"), ("debian-security", "-security")];
/// Extra certificate authorities of this machine: behind a proxy an empty root needs them as well.
const AUTHORITIES: &str = "/usr/local/share/ca-certificates";
/// Enters the root given as first argument and runs the second there, in the clone.
const ENTER: &str = "mount --rbind /dev \"$1/dev\" && mount -t proc proc \"$1/proc\" && \
                     mount -t sysfs sysfs \"$1/sys\" && \
                     exec chroot \"$1\" /usr/bin/env -i HOME=/home/empty \
                     PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                     sh -c \"cd /clone && $2\"";

/// Where the commands run.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// This machine, with a home directory in which nothing lies.
    EmptyHome,
    /// A new Debian system with nothing but its base.
    DebianRoot,
}

/// A folder that is removed when its owner is done, however that ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Runs every command of the README's quick start; stops at the first that fails.
pub(crate) fn run(place: Place) -> Result<bool> {
    let readme = fs::read_to_string(root().join("README.md")).context("cannot read README.md")?;
    let commands = quick_start(&readme);
    ensure!(commands.len() == 2, "the quick start of README.md has {} commands", commands.len());
    let name = format!("wirespool-fresh-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir(&folder.0).context("cannot create a temporary folder")?;
    if let Place::DebianRoot = place {
        debian_root(&folder.0)?;
    }
    fs::create_dir_all(folder.0.join("home/empty")).context("cannot create the empty home")?;
    let clone = folder.0.join("clone");
    run_command(command("git", &["clone", "--quiet", "."]).arg(&clone))?;
    if let Place::EmptyHome = place {
        lend_captures(&folder.0)?;
    }
    for line in commands {
        println!("$ {line}");
        let mut shell = match place {
            Place::EmptyHome => with_empty_home(&folder.0, line),
            Place::DebianRoot => inside(&folder.0, line),
        };
        run_command(&mut shell).with_context(|| format!("the README's command {line} fails"))?;
    }
    Ok(true)
}

/// The tests look for the captures and their reference tables beside the clone.
fn lend_captures(folder: &Path) -> Result<()> {
    let shared = root().join("../shared");
    if shared.is_dir() {
        let shared = shared.canonicalize().context("cannot follow ../shared")?;
        std::os::unix::fs::symlink(shared, folder.join("shared")).context("cannot link shared")?;
    }
    Ok(())
}

/// The lines of the first block of code below the heading.
fn quick_start(readme: &str) -> Vec<&str> {
    let section = readme.lines().skip_while(|line| *line != SECTION);
    let block = section.skip_while(|line| !line.starts_with("```")).skip(1);
    block.take_while(|line| !line.starts_with("```")).map(without_comment).collect()
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line).trim()
}

fn with_empty_home(folder: &Path, line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder.join("clone")).env_clear();
    shell.env("HOME", folder.join("home/empty"));
    shell.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell
}

fn inside(folder: &Path, line: &str) -> Command {
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh"]);
    shell.arg(folder).arg(line);
    shell
}

fn debian_root(folder: &Path) -> Result<()> {
    let mut debootstrap = command("debootstrap", &["--variant=minbase", RELEASE]);
    run_command(debootstrap.arg(folder).arg(format!("{MIRROR}/debian")))?;
    let suites =
        SUITES.map(|(archive, suite)| format!("deb {MIRROR}/{archive} {RELEASE}{suite} main\n"));
    let sources = folder.join("etc/apt/sources.list");
    fs::write(sources, suites.concat()).context("cannot write the list of sources")?;
    if Path::new(AUTHORITIES).is_dir() {
        let to = folder.join(AUTHORITIES.trim_start_matches('/'));
        fs::create_dir_all(&to).context("cannot create the folder of authorities")?;
        run_command(command("cp", &["-rT", AUTHORITIES]).arg(to))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_start_is_read_without_its_comments() {
        let start = "## Quick start\ntext\n\n```sh\na/b   # why\nc d\n```\n";
        let readme = format!("# x\n```sh\nno\n```\n{start}```\nno\n```\n");
        assert_eq!(quick_start(&readme), ["a/b", "c d"]);
        assert!(quick_start("## Quick\n").is_empty());
    }
}
