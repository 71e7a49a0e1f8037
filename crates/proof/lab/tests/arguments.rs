//! What the lab is asked for is looked at before a machine is started.

use std::process::Command;

#[test]
fn a_case_that_is_not_there_is_named() {
    let lab = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["run", "--scripts", "../../../lab", "--wirespool", "none", "no-such-case"])
        .output()
        .unwrap();
    assert!(!lab.status.success());
    let said = String::from_utf8(lab.stdout).unwrap();
    assert!(said.contains("there is no case no-such-case"), "{said}");
}
