//! Loop devices, and the other things that need root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a file, detached when dropped.
pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    /// Attaches a loop device, or prints why the test cannot run.
    pub(crate) fn attach(file: &Path, options: &[&str]) -> Option<Self> {
        let file = file.to_str().unwrap();
        let name = output("losetup", &[&["--find", "--show"], options, &[file]].concat())?;
        Some(Self(PathBuf::from(name.trim())))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        assert!(run("losetup", &["--detach", self.0.to_str().unwrap()]));
    }
}

/// Runs a command; `false`, with the reason printed, when it cannot be run or fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    output(program, arguments).is_some()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => {
            println!("not run: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            println!("not run: {program}: {error}");
            None
        }
    }
}
