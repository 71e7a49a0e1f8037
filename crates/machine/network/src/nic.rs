//! What a network interface is like, as far as `sysfs` says, and what it has done.

use std::collections::BTreeMap;
use std::fs;

/// How many receive queues an interface has; `None` where that is not known.
pub fn receive_queue_count(interface: &str) -> Option<usize> {
    let entries = fs::read_dir(format!("/sys/class/net/{interface}/queues")).ok()?;
    let is_receiving = |name: &str| name.starts_with("rx-");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter(|name| is_receiving(name)).count())
}

/// One direction of an interface, since it is there (`proc_pid_net(5)`, "net/dev").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectionCounters {
    /// Bytes that went through.
    pub bytes: u64,
    /// Packets that went through.
    pub packets: u64,
    /// Those that were not right.
    pub errors: u64,
    /// Those for which there was no space or no use; of those received also what the card missed.
    pub drops: u64,
}

/// What an interface has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Counters of received packets.
    pub received: DirectionCounters,
    /// Counters of sent packets.
    pub sent: DirectionCounters,
}

/// The interfaces of this network namespace by name, with what they have done.
pub fn link_counters() -> BTreeMap<String, LinkCounters> {
    let text = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    text.lines().filter_map(link).collect()
}

/// Eight numbers of what was received, eight of what was sent.
fn link(line: &str) -> Option<(String, LinkCounters)> {
    let (name, numbers) = line.split_once(':')?;
    let counts: Vec<u64> =
        numbers.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let direction = |counts: &[u64]| match *counts {
        [bytes, packets, errors, drops, ..] => {
            Some(DirectionCounters { bytes, packets, errors, drops })
        }
        _ => None,
    };
    let (received, sent) = counts.split_at_checked(8)?;
    let counters = LinkCounters { received: direction(received)?, sent: direction(sent)? };
    Some((name.trim().to_owned(), counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_one_receive_queue() {
        assert_eq!(receive_queue_count("lo"), Some(1));
        assert_eq!(receive_queue_count("no-such-interface"), None);
    }

    #[test]
    fn interfaces_have_counters_of_both_directions() {
        let line = "  eth0: 10 2 3 4 5 6 7 8 20 9 11 12 13 14 15 16";
        let (name, found) = link(line).unwrap();
        let received = DirectionCounters { bytes: 10, packets: 2, errors: 3, drops: 4 };
        let sent = DirectionCounters { bytes: 20, packets: 9, errors: 11, drops: 12 };
        assert_eq!((&*name, found), ("eth0", LinkCounters { received, sent }));
        assert_eq!(link(" face |bytes packets errs drop|bytes packets errs drop"), None);
        assert!(link_counters().contains_key("lo"));
    }
}
