//! What a configuration names that this machine lacks. It may come later, or the file is for
//! another machine: that is worth a note, and no fault.

use std::collections::BTreeSet;
use std::path::Path;

use page::safe::printable;

use crate::{Fault, Job};

/// Keys of files and folders that are there before the service is.
const FOUND: [&str; 12] = [
    "volume",
    "volumes",
    "member",
    "token_file",
    "provider",
    "tls_cert",
    "tls_key",
    "client_ca",
    "client_crl",
    "qualification",
    "identity",
    "tshark",
];
/// Keys of those that the service makes.
const MADE: [&str; 6] =
    ["index_dir", "hold_dir", "audit", "tags_file", "requests_file", "people_file"];
const INTERFACE: &str = "interface";

/// A note for each volume, file, folder and interface of some jobs, but for interfaces that
/// `is_interface` knows.
pub fn absent(jobs: &[Job], is_interface: &dyn Fn(&str) -> bool) -> Vec<Fault> {
    let mut seen = BTreeSet::new();
    let mut notes = Vec::new();
    for job in jobs {
        for (key, values) in &job.keys {
            for value in values.iter().filter(|value| seen.insert((*value).clone())) {
                let why = match &*key.name {
                    INTERFACE => (!is_interface(value))
                        .then(|| format!("this machine has no interface {}", printable(value))),
                    name => why_of_path(name, value),
                };
                let line = job.line_of(&key.name);
                let note = |why| Fault { line, why: format!("{}: {why}", key.name) };
                notes.extend(why.map(note));
            }
        }
    }
    notes
}

fn why_of_path(key: &str, value: &str) -> Option<String> {
    let path = Path::new(value);
    let is_found = FOUND.contains(&key);
    if !is_found && !MADE.contains(&key) {
        return None;
    }
    let shown = printable(value);
    if path.is_relative() {
        let from = "counts from the folder in which the service is started";
        return Some(format!("{shown} {from}; write the whole path"));
    }
    (is_found && !host::is_there(path)).then(|| format!("{shown} is not there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_named_and_what_the_service_makes_is_not() {
        assert_eq!(why_of_path("volume", "/"), None);
        assert!(why_of_path("volume", "/nonexistent").unwrap().contains("is not there"));
        assert!(why_of_path("hold_dir", "holds").unwrap().contains("counts from"));
        assert_eq!(why_of_path("hold_dir", "/nonexistent"), None);
        assert_eq!(why_of_path("filter", "port 53"), None);
    }
}
