//! Other programs: where they are, what they say, and which libraries they need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where tools for administrators lie, which PATH of a user may not name.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// A program by its name; `None` if the machine does not have it.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a program writes to its standard output; an error with what it said unless it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let result = command.output().with_context(|| format!("cannot run {name}"))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        bail!("{name}: {}: {}", result.status, said.trim());
    }
    Ok(result.stdout)
}

/// The dynamic libraries of a program, the loader included. None for a static one.
pub(crate) fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let result = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let text = String::from_utf8_lossy(&result.stdout).into_owned();
    let words = text.split_whitespace();
    Ok(words.filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// All files below a folder, in order of their names.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = Vec::from([folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
