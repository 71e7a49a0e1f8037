//! Writes the small corpus into a folder, to look at it with other tools.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("usage: write FOLDER"))?;
    testdata::write_small(&folder)
}
