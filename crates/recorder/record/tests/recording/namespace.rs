//! Tests with networks and mounts of their own: a test starts this binary again inside new
//! namespaces, and runs there. Ordinary users may do so where user namespaces are allowed.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

const INSIDE: &str = "RECORD_TEST_NAMESPACE";

/// Makes the new mounts our own, shows the new network in /sys, and keeps new interfaces silent.
const PRIVATE: &str = "mount --make-rprivate /
    mount -t sysfs none /sys
    if [ -d /proc/sys/net/ipv6 ]; then
        echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
        echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
    fi";

/// True inside. Outside it runs the test of this name inside, where the shell has taken `steps`,
/// checks that it passed, and returns false; where that cannot be done it prints why.
pub(crate) fn enter(test: &str, steps: &str) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        // The line that names the test has no end yet.
        println!();
        return true;
    }
    let script = format!("set -e\n{PRIVATE}\n{steps}\nexec \"$@\"");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        if !is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--net", "--mount", "sh", "-c", script, "sh"]).stdin(Stdio::null());
        command
    };
    let ready = unshare(&script).arg("true").output();
    let refusal = match ready {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ")),
        Err(error) => Some(error.to_string()),
    };
    if let Some(refusal) = refusal {
        println!("not run: no namespace of its own: {refusal}");
        return false;
    }
    let output = unshare(&script)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let of_harness =
        |line: &str| line.is_empty() || line.starts_with("test ") || line.starts_with("running ");
    for line in said.lines().filter(|line| !of_harness(line)) {
        println!("{line}");
    }
    false
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}
