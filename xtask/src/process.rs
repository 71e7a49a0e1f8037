//! Running other programs from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The feature that packages have and a plain build has not.
pub(crate) const SQL: &str = "wirespool/sql";

/// The root of the repository: the directory above this crate. As cargo says when it runs this
/// program, not when it compiled it: two checkouts may share one folder of build output.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo xtask runs this program");
    Path::new(&here).parent().expect("xtask lies in the repository").to_path_buf()
}

/// Where cargo builds, and what we build beside it.
pub(crate) fn target_folder() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| root().join("target"))
}

/// A command with its arguments, to be run in the root of the repository.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Cargo as it runs this program, so that a tool chain chosen by the caller stays chosen.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), arguments)
}

/// Whether a program of this name can be started.
pub(crate) fn exists(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// What the command writes to its standard output; an error unless it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = name(command);
    let result = command.stderr(Stdio::inherit()).output();
    let result = result.with_context(|| format!("cannot run {name}"))?;
    if !result.status.success() {
        bail!("{name}: {}", result.status);
    }
    Ok(result.stdout)
}

/// As [`output`], as text.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    String::from_utf8(output(command)?).with_context(|| format!("{} is not text", name(command)))
}

/// Runs the command with its output on the terminal; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = name(command);
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// The command line as a reader would type it.
pub(crate) fn name(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
