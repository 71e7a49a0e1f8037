//! `--interface any`: the interfaces that are up when a recording begins.

use anyhow::Result;

use crate::failure::Usage;

/// The word for all of them. No interface can have it: `ip-link(8)` refuses the name.
const ANY: &str = "any";

/// As many are recorded at most: each has a kernel ring of its own, and a thread for each queue.
const INTERFACES_MAX: usize = 32;

/// Said when it records, and not of a recording that does not begin.
pub const NOTE: &str = "--interface any: interfaces that come up later are not recorded";

/// All that are up are meant.
pub fn is_asked(named: &[String]) -> bool {
    named.iter().any(|name| name == ANY)
}

/// The interfaces to record: those that were named, and, where `any` is among them, all others that
/// are up.
pub fn interfaces(mut named: Vec<String>) -> Result<Vec<String>> {
    let count = named.len();
    named.retain(|name| name != ANY);
    if named.len() == count {
        return Ok(named);
    }
    all(named, network::interfaces_up()?)
}

fn all(mut named: Vec<String>, up: Vec<String>) -> Result<Vec<String>> {
    let further: Vec<String> = up.into_iter().filter(|name| !named.contains(name)).collect();
    named.extend(further);
    if named.is_empty() {
        return Err(Usage("--interface any: no interface is up here".to_owned()).into());
    }
    if named.len() > INTERFACES_MAX {
        let (count, list) = (named.len(), page::safe::printable(&named.join(" ")));
        return Err(Usage(format!(
            "--interface any: {count} interfaces are up, and at most {INTERFACES_MAX} are \
             recorded; name those that matter, each with --interface: {list}"
        ))
        .into());
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn each_is_recorded_once_and_those_that_were_named_come_first() {
        let found = all(texts(&["eth1"]), texts(&["lo", "eth0", "eth1"])).unwrap();
        assert_eq!(found, ["eth1", "lo", "eth0"]);
        assert_eq!(interfaces(texts(&["eth7"])).unwrap(), ["eth7"]);
    }

    #[test]
    fn none_and_too_many_are_refused_in_one_line() {
        assert!(all(Vec::new(), Vec::new()).unwrap_err().to_string().contains("no interface"));
        let many: Vec<String> = (0..33).map(|number| format!("eth{number}")).collect();
        assert_eq!(all(Vec::new(), many.get(..32).unwrap().to_vec()).unwrap().len(), 32);
        let refused = all(Vec::new(), many).unwrap_err().to_string();
        assert!(refused.contains("33 interfaces are up") && refused.contains("eth32"), "{refused}");
    }
}
