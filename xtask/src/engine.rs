//! `cargo xtask engine`: unpacks Trino, and compares what engines find in an archive with what
//! `find` shows.

use anyhow::Result;

use crate::process::{SQL, cargo, command, run};

/// The tests that ask engines: in an ordinary run those of Trino say that they do not run.
const TESTS: &str = "engine::";

pub(crate) fn check() -> Result<bool> {
    run(&mut command("deploy/trino/engine", &["fetch"]))?;
    // The features of all tests: with others every library would be built once more.
    let tests = ["test", "--locked", "--workspace", "--features", SQL, "--test", "black_box"];
    let tests = [&tests[..], &["--", "--nocapture", TESTS]].concat();
    Ok(cargo(&tests).env("WIRESPOOL_ENGINES", "1").status()?.success())
}
