//! Inputs in `fuzz/seeds` that tests make, so that it is known what they are: included by its path.
//!
//! `WIRESPOOL_MAKE_SEEDS=1 cargo test -p CRATE --test untrusted` writes them again.

use std::fs;
use std::path::Path;

/// Asserts that an input of a target is what was made, or writes it where that is wished.
#[track_caller]
pub(crate) fn made(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds").join(target);
    if std::env::var_os("WIRESPOOL_MAKE_SEEDS").is_some() {
        fs::create_dir_all(&folder).expect("the repository can be written");
        fs::write(folder.join(name), bytes).expect("the repository can be written");
    }
    let found = fs::read(folder.join(name)).ok();
    assert!(
        found.as_deref() == Some(bytes),
        "fuzz/seeds/{target}/{name} is not what is made: WIRESPOOL_MAKE_SEEDS=1 writes it"
    );
}
