//! Files that a command writes: one that is there is replaced only where `--force` says so.

use std::path::Path;

use anyhow::bail;
use host::{Output, OutputFolder};

/// Refuses a file that exists, in a line that names the flag. For commands that write several
/// files, before the first of them is begun.
pub fn check(path: &Path, force: bool) -> anyhow::Result<()> {
    if !force && matches!(host::target(path)?, host::Target::File { .. }) {
        bail!("{} exists already; --force replaces it", page::safe::path(path));
    }
    Ok(())
}

/// Begins a file.
pub fn create(path: &Path, force: bool) -> anyhow::Result<Output> {
    check(path, force)?;
    host::claim_output(path)?;
    Ok(Output::create(path, force)?)
}

/// Begins a folder of files.
pub fn create_folder(path: &Path) -> anyhow::Result<OutputFolder> {
    host::claim_output(path)?;
    Ok(OutputFolder::create(path)?)
}

/// Begins a file where one is named.
pub fn create_named(path: Option<impl AsRef<Path>>, force: bool) -> anyhow::Result<Option<Output>> {
    path.map(|path| create(path.as_ref(), force)).transpose()
}
