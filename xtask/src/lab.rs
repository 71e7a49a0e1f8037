//! `cargo xtask lab` and `faults`: builds the program and the lab, and runs cases in a virtual
//! machine, or plants causes of slowness on this one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{SQL, cargo, root, text};

/// The command of a verb of the lab, `run` or `faults`, with both programs built.
pub(crate) fn command(verb: &str, arguments: &[&str]) -> Result<Command> {
    // What the tests have built: with other features every library would be built once more.
    let build = ["test", "--no-run", "--locked", "--message-format=json", "--workspace"];
    let build = [&build[..], &["--features", SQL]].concat();
    let messages = text(&mut cargo(&build))?;
    let mut lab = Command::new(executable(&messages, "lab")?);
    lab.current_dir(root()).args([verb, "--wirespool"]);
    lab.arg(executable(&messages, "wirespool")?).args(arguments);
    Ok(lab)
}

/// Runs a verb of the lab; its exit status is the verdict.
pub(crate) fn run(verb: &str, arguments: &[&str]) -> Result<bool> {
    Ok(command(verb, arguments)?.status().context("cannot run the lab")?.success())
}

/// Where cargo put a program, not its unit tests, from its messages.
fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let path = messages
        .filter(|message| message.pointer("/target/name").is_some_and(|found| found == name))
        .filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(false)))
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    path.with_context(|| format!("cargo built no program {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_messages_of_cargo() {
        let message = |executable: &str, is_test: bool| {
            let program = "\"target\":{\"name\":\"lab\"}";
            format!("{{{program},\"profile\":{{\"test\":{is_test}}},\"executable\":{executable}}}")
        };
        let (library, tests) = (message("null", false), message("\"/t/lab-1\"", true));
        let messages = format!("{library}\nno json\n{tests}\n{}\n", message("\"/t/lab\"", false));
        assert_eq!(executable(&messages, "lab").unwrap(), PathBuf::from("/t/lab"));
        assert!(executable(&messages, "wirespool").is_err());
    }
}
