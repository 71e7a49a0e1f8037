//! Files that a command writes: one that is there is replaced only where `--force` says so.

use std::path::Path;

use anyhow::bail;
use host::Output;

/// Begins a file. One that exists is refused before anything else is done, and the refusal names
/// the flag.
pub(crate) fn create(path: &Path, force: bool) -> anyhow::Result<Output> {
    if !force && matches!(host::target(path)?, host::Target::File { .. }) {
        bail!("{} exists already; --force replaces it", page::safe::path(path));
    }
    Ok(Output::create(path, force)?)
}
