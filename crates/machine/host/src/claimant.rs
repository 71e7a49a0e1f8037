//! This process as another one can recognize it, and whether such a process is gone.

use std::fs;

use format::claim::{Claimant, machine_of};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::processes::Stat;

/// What this machine calls itself.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This process. What the system does not say stays empty.
pub fn claimant() -> Claimant {
    let process = std::process::id();
    let host = host_name();
    let boot_id = boot_id().unwrap_or_default();
    let started = Stat::of(process).map_or(0, |found| found.started);
    let machine = machine().unwrap_or_default();
    let pid_namespace = namespace("pid").unwrap_or(0);
    Claimant { host, machine, boot_id, pid_namespace, started, process }
}

/// Which boot the clocks count from, or a moment of its own in a namespace of time; 0: not known.
pub(crate) fn boot() -> u64 {
    let id = boot_id().and_then(|id| id.first_chunk().copied());
    id.map_or(0, |id| u64::from_le_bytes(id) ^ namespace("time").unwrap_or(0))
}

fn boot_id() -> Option<[u8; 16]> {
    boot_id_of(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim())
}

/// "pid:[4026531836]": namespaces(7).
fn namespace(kind: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    link.to_str()?.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// What the installation and the board say together: either may have been copied to another
/// machine (images of disks, boards without a number of their own), hardly both. Root reads the
/// second one, and some machines have none.
fn machine() -> Option<[u8; 16]> {
    let read = |path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let installation = read("/etc/machine-id").filter(|text| text.len() >= 32)?;
    let board = read("/sys/class/dmi/id/product_uuid").filter(|text| text.len() >= 32)?;
    Some(machine_of(&[&installation, &board]))
}

/// Whether a process is known to be gone: that of an earlier running of this machine is. Not so of
/// one on another machine, in another namespace of processes, or hidden. This process itself is
/// gone in this sense: what it claimed before it knows to be free when it asks.
pub fn is_gone(claimant: &Claimant) -> bool {
    let own = self::claimant();
    if own.machine == claimant.machine
        && own.machine != [0; 16]
        && own.boot_id != claimant.boot_id
        && own.boot_id != [0; 16]
        && claimant.boot_id != [0; 16]
    {
        return true;
    }
    let is_here = own.boot_id == claimant.boot_id && own.pid_namespace == claimant.pid_namespace;
    if !is_here || own.boot_id == [0; 16] || own.pid_namespace == 0 || claimant.started == 0 {
        return false;
    }
    if own == *claimant {
        return true;
    }
    if let Some(found) = Stat::of(claimant.process) {
        return !found.is_alive || found.started != claimant.started;
    }
    // It may be there and hidden: hidepid in proc_pid(5).
    let pid = i32::try_from(claimant.process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// `8b7a4b1e-...`: 32 digits and dashes.
fn boot_id_of(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn this_process_is_known_and_is_nobody_else() {
        let own = claimant();
        assert!(own.boot_id != [0; 16] && own.pid_namespace != 0 && own.started != 0, "{own:?}");
        assert_eq!(own, claimant());
        assert!(is_gone(&own));
        assert!(boot() != 0 && boot() == boot());
    }

    #[test]
    fn a_process_is_gone_when_it_has_ended_also_where_nobody_has_asked_how() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let started = Stat::of(child.id()).unwrap().started;
        let other = Claimant { process: child.id(), started, ..claimant() };
        assert!(!is_gone(&other));
        let later = Claimant { started: started + 1, ..other.clone() };
        assert!(is_gone(&later), "its number is another one's");
        child.kill().unwrap();
        while Stat::of(child.id()).unwrap().is_alive {}
        assert!(is_gone(&other));
        child.wait().unwrap();
        assert!(is_gone(&other));
    }

    #[test]
    fn of_another_machine_or_namespace_nothing_is_known() {
        let own = claimant();
        let elsewhere = [
            Claimant { boot_id: [1; 16], machine: [1; 16], ..own.clone() },
            Claimant { boot_id: [1; 16], machine: [0; 16], ..own.clone() },
            Claimant { pid_namespace: 1, ..own.clone() },
            Claimant { started: 0, ..own.clone() },
        ];
        assert!(!elsewhere.iter().any(is_gone));
    }

    #[test]
    fn what_is_no_boot_id_is_none() {
        assert_eq!(boot_id_of("00000000-0000-0000-0000-00000000002a"), Some(42_u128.to_be_bytes()));
        assert!(boot_id_of("8b7a").is_none() && boot_id_of("").is_none());
    }
}
