//! What lies in a folder: one of the user's, or of those that the kernel shows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// The regular files of a folder by name, with their lengths. A folder that is not there is empty.
pub fn files_in(folder: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let fail = |error| Error::path("list", folder, error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fail)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        // What goes away meanwhile is not there.
        if let Ok(found) = entry.metadata()
            && found.is_file()
        {
            files.push((entry.path(), found.len()));
        }
    }
    files.sort();
    Ok(files)
}

/// Entries of a directory, by name; none if it does not exist.
pub fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_by_name_with_their_lengths() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(files_in(&folder.path().join("absent")).unwrap(), []);
        fs::create_dir(folder.path().join("folder")).unwrap();
        for name in ["b", "a"] {
            fs::write(folder.path().join(name), name.repeat(3)).unwrap();
        }
        let expected = ["a", "b"].map(|name| (folder.path().join(name), 3));
        assert_eq!(files_in(folder.path()).unwrap(), expected);
    }
}
