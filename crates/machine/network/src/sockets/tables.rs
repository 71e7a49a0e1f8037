//! Counters and settings of the network namespace that this thread is in.

use std::collections::BTreeMap;
use std::fs;

/// Counters since the namespace began, by the names of nstat(8), such as `TcpExtListenOverflows`.
pub type Counters = BTreeMap<String, u64>;
/// Settings by the name of their file below `net/ipv4` or `net/core`, such as `tcp_syncookies`.
pub type Settings = BTreeMap<String, String>;

/// Of this thread, not of its process, which may be in another namespace.
const TABLES: [&str; 2] = ["/proc/thread-self/net/netstat", "/proc/thread-self/net/snmp"];
const IPV6_TABLE: &str = "/proc/thread-self/net/snmp6";
const SETTINGS: [(&str, &str); 14] = [
    ("ipv4", "tcp_syncookies"),
    ("ipv4", "tcp_timestamps"),
    ("ipv4", "tcp_sack"),
    ("ipv4", "tcp_window_scaling"),
    ("ipv4", "tcp_max_syn_backlog"),
    ("ipv4", "tcp_rmem"),
    ("ipv4", "tcp_wmem"),
    ("ipv4", "tcp_tw_reuse"),
    ("ipv4", "tcp_mtu_probing"),
    ("ipv4", "ip_local_port_range"),
    ("ipv4", "ip_local_reserved_ports"),
    ("ipv4", "ip_forward"),
    ("core", "rmem_max"),
    ("core", "somaxconn"),
];

/// Those of the namespace that this thread is in. What cannot be read is not there.
pub fn counters() -> Counters {
    let texts = TABLES.iter().filter_map(|path| fs::read_to_string(path).ok());
    let mut counters: Counters = texts.flat_map(|text| parse(&text)).collect();
    counters.extend(parse_ipv6(&fs::read_to_string(IPV6_TABLE).unwrap_or_default()));
    counters
}

/// Lines of a name and its value.
fn parse_ipv6(text: &str) -> Counters {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Pairs of lines, names and values, each behind the name of its protocol.
pub(super) fn parse(text: &str) -> Counters {
    let mut counters = Counters::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let Some((protocol, names)) = names.split_once(": ") else { continue };
        let values = values.split(' ').skip(1);
        for (name, value) in names.split(' ').zip(values) {
            // A few are limits, and -1 is none.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{protocol}{name}"), value);
            }
        }
    }
    counters
}

pub(super) fn settings() -> Settings {
    let read = |(folder, name): &(&str, &str)| {
        let text = fs::read_to_string(format!("/proc/sys/net/{folder}/{name}")).ok()?;
        Some(((*name).to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    SETTINGS.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_of_nstat() {
        let text = "TcpExt: SyncookiesSent SyncookiesRecv\nTcpExt: 1 2\nTcp: MaxConn InSegs\n\
                    Tcp: -1 7\n";
        let counters = parse(text);
        assert_eq!(counters.get("TcpExtSyncookiesRecv"), Some(&2));
        assert_eq!((counters.get("TcpInSegs"), counters.get("TcpMaxConn")), (Some(&7), None));
        assert!(super::counters().contains_key("TcpExtListenOverflows"));
        let ipv6 = parse_ipv6("Udp6InErrors   \t0\nUdp6RcvbufErrors \t 7\nx\n");
        assert_eq!((ipv6.len(), ipv6.get("Udp6RcvbufErrors")), (2, Some(&7)));
    }

    #[test]
    fn settings_are_those_of_the_kernel() {
        assert!(settings().contains_key("tcp_sack"));
    }
}
