//! The files of a chain: the one that is written, and those that were.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::raw::next_line;

/// A file is renamed to its own name, a dot, and the number of its last line with so many digits.
const DIGITS: usize = 12;

/// The name that a full file gets.
pub(crate) fn full_name(path: &Path, last_seq: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{last_seq:0DIGITS$}"));
    name.into()
}

/// Files that the service itself has renamed, the oldest first, with their lengths.
pub(crate) fn full_files(path: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let is_number = |rest: &str| {
        rest.strip_prefix('.').is_some_and(|digits| {
            digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut files = siblings(path)?;
    files.retain(|(file, _)| rest_of_name(path, file).is_some_and(|rest| is_number(&rest)));
    Ok(files)
}

/// Files beside one whose names begin with its name: the operator may have renamed it.
pub(crate) fn siblings(path: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut files = host::files_in(folder.unwrap_or(Path::new(".")))?;
    files.retain(|(file, bytes)| {
        *bytes > 0 && rest_of_name(path, file).is_some_and(|rest| !rest.is_empty())
    });
    Ok(files)
}

fn rest_of_name(path: &Path, other: &Path) -> Option<String> {
    let own = path.file_name()?.to_str()?;
    Some(other.file_name()?.to_str()?.strip_prefix(own)?.to_owned())
}

/// Number of the first line of a file; none where it has none of an audit.
pub(crate) fn first_seq(path: &Path) -> Option<u64> {
    let mut input = std::io::BufReader::new(host::open_input(path).ok()?);
    let raw = next_line(&mut input).ok()??;
    crate::Line::read(&raw.text).map(|line| line.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_service_gives_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let full = full_name(&path, 42);
        for name in ["audit", "audit.1", "audit.000000000042", "audit-2026", "audit.00000000004x"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        assert_eq!(full_files(&path).unwrap(), [(full, 1)]);
        assert_eq!(siblings(&path).unwrap().len(), 4);
    }
}
