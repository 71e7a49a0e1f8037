//! Data for tests: a small corpus of captures that is made when a test runs, profiles of disks that
//! lie beside this crate, and the one place that knows where the large corpus is.
//!
//! The small corpus has the form of the large one: captures in `pcap/` and `derived/`, and in
//! `ref/` tables of what is in them. The large one's tables come from other tools; here the
//! generator itself says what it made, before any of our code has read it. It shares nothing with
//! the crates that it tests, and where tshark is installed tshark is asked whether it agrees.
//!
//! This crate is for tests alone: no crate depends on it otherwise, and it depends on none of ours.

#![expect(clippy::indexing_slicing, reason = "a test that cannot make its data fails")]

mod container;
mod corpus;
mod damaged;
mod layers;
mod payloads;
mod scene;
mod scenes;
mod tables;
mod talk;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The setting: a folder with `corpus` and `zone-profiles`. Empty means that there is none.
pub const SETTING: &str = "WIRESPOOL_CORPUS";

/// Where it lies without the setting: beside the checkout.
const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data");

/// Captures with tables of what is in them.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    /// Whether it is the large one: real captures, and tables by other tools.
    pub is_large: bool,
    /// The small one goes when it is no longer used.
    _made: Option<TempDir>,
}

impl Corpus {
    /// The folder with `pcap`, `derived` and `ref`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The small one, made now.
    pub fn small() -> Self {
        let made = tempfile::tempdir().expect("a folder for captures");
        corpus::write(made.path()).expect("captures can be written");
        Self { path: made.path().to_owned(), is_large: false, _made: Some(made) }
    }

    /// The large one, where it is.
    pub fn large() -> Option<Self> {
        let path = large_data()?.join("corpus");
        Some(Self { path, is_large: true, _made: None })
    }

    /// The small one, and the large one where it is.
    pub fn all() -> Vec<Self> {
        std::iter::once(Self::small()).chain(Self::large()).collect()
    }

    /// Every capture, damaged ones among them, in a fixed order.
    pub fn captures(&self) -> Vec<PathBuf> {
        let mut files = files_below(&self.path.join("pcap"));
        files.extend(files_below(&self.path.join("derived")));
        files.retain(|path| path.extension().is_none_or(|extension| extension != "tsv"));
        files
    }
}

/// Writes the small corpus into a folder, for other eyes than those of tests.
pub fn write_small(folder: &Path) -> std::io::Result<()> {
    corpus::write(folder)
}

/// Why tests over real captures cannot run, for those that need them.
pub fn lacks_large() -> String {
    format!("no real captures: shared/data is not beside the checkout, {SETTING} names no other")
}

/// Folders with `single-8tb.csv` and `raid6-10x4tb.csv`, and whether they are the published ones.
/// Those that lie here are made up, of disks as large.
pub fn zone_profiles() -> Vec<(PathBuf, bool)> {
    let made_up = Path::new(env!("CARGO_MANIFEST_DIR")).join("zone-profiles");
    let published = large_data().map(|data| (data.join("zone-profiles"), true));
    std::iter::once((made_up, false)).chain(published).collect()
}

/// The folder of the large corpus and of the published profiles.
fn large_data() -> Option<PathBuf> {
    let Some(set) = std::env::var_os(SETTING) else {
        let beside = PathBuf::from(BESIDE);
        return beside.join("corpus").is_dir().then_some(beside);
    };
    if set.is_empty() {
        return None;
    }
    let set = PathBuf::from(set);
    // Who names a folder wants it to be used: a mistake is no reason to skip.
    let complete = ["corpus", "zone-profiles"].iter().all(|name| set.join(name).is_dir());
    assert!(complete, "{SETTING}: no corpus and zone-profiles in {}", set.display());
    Some(set)
}

/// All files below a folder, in a fixed order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of captures") {
            let path = entry.expect("a folder of captures").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
