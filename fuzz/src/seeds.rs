//! Small inputs that fuzz targets start from (`fuzz/seeds`), for ordinary tests of the crates that
//! the targets read with: included by their path.

use std::fs;
use std::path::Path;

/// The inputs of a target, of which there are so many at least.
#[track_caller]
pub(crate) fn of(target: &str, least: usize) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds").join(target);
    let files = fs::read_dir(folder).expect("each target has a folder");
    let read = |seed: fs::DirEntry| fs::read(seed.path()).expect("it is a file of the repository");
    let seeds: Vec<Vec<u8>> = files.map(|seed| read(seed.expect("it can be listed"))).collect();
    assert!(seeds.len() >= least, "{} inputs of {target}", seeds.len());
    seeds
}
