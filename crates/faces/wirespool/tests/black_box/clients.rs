//! Clients of the interface in other languages, against this program.

use std::process::Command;

use crate::machine::{BINARY, python};

#[test]
fn the_python_client_agrees_with_this_program() {
    let packages = ["pytest", "pandas", "pyarrow", "scapy", "dpkt", "nbformat"];
    let Some(python) = python("client", &packages) else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../clients/python");
    let mut tests = Command::new(python);
    tests.current_dir(folder).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1").env("WIRESPOOL", BINARY);
    let output = tests.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let sum = said.lines().last().unwrap_or_default();
    assert!(sum.contains(" passed") && !sum.contains("skipped"), "{said}");
}
