//! The files of the repository in another place, to be built there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::process;

/// Copies a folder of the repository as it is, `.` for all of it, each file with its time, so that
/// cargo takes what was built of it here; what is no source is removed.
pub(crate) fn copy(folder: &str, to: &Path) -> Result<()> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let from = process::root().join(folder);
    let list = process::text(process::command("git", &list).current_dir(&from))?;
    let paths: BTreeSet<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    remove_others(to, &paths.iter().map(|path| to.join(path)).collect())?;
    for path in paths {
        let (from, to) = (from.join(path), to.join(path));
        let Ok(bytes) = fs::read(&from) else { continue };
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
        set_modified(&to, from.metadata()?.modified()?)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a time is set by an open file alone")]
fn set_modified(path: &Path, time: SystemTime) -> Result<()> {
    Ok(fs::File::options().write(true).open(path)?.set_modified(time)?)
}

/// What an earlier copy has left of files and folders that are gone: cargo takes an empty folder
/// beside crates for one without a manifest.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        // A link to a folder is a file of its own.
        if entry.file_type()?.is_dir() {
            remove_others(&path, kept)?;
            if fs::read_dir(&path)?.next().is_none() {
                fs::remove_dir(&path)?;
            }
        } else if !kept.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_crate_that_has_moved() {
        let tree = std::env::temp_dir().join(format!("xtask-sources-{}", std::process::id()));
        let (gone, here) =
            (tree.join("crates/a/src/lib.rs"), tree.join("crates/base/a/Cargo.toml"));
        for file in [&gone, &here] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        remove_others(&tree, &BTreeSet::from([here.clone()])).unwrap();
        let is_left = (tree.join("crates/a").exists(), here.exists());
        fs::remove_dir_all(&tree).unwrap();
        assert_eq!(is_left, (false, true));
    }
}
