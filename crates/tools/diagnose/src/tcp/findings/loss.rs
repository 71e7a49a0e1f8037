//! Segments that had to be sent again.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::sockets::TcpInfo;

use super::super::watch::{Track, Watch};
use super::group::gained;
use crate::finding::{Finding, Remedy, Severity};
use crate::words::{percent, plural};

/// Fewer are no finding.
const SEGMENTS_MIN: u64 = 50;
/// One in a hundred: below that it is hardly felt.
const SHARE: u64 = 100;

/// Hosts towards which more than one segment in a hundred was sent again while we looked.
pub(super) fn findings(watch: &Watch) -> Vec<Finding> {
    let mut hosts: BTreeMap<IpAddr, Host> = BTreeMap::new();
    for track in watch.tracks.values() {
        let host = hosts.entry(track.last.remote.ip().to_canonical()).or_default();
        host.take(track);
    }
    let is_bad = |host: &Host| host.again >= SEGMENTS_MIN && host.again * SHARE > host.sent;
    let bad = hosts.iter().filter(|(_, host)| is_bad(host));
    bad.map(|(ip, host)| finding(ip, host)).collect()
}

#[derive(Debug, Default)]
struct Host {
    connections: usize,
    hit: usize,
    sent: u64,
    again: u64,
    duplicates: u64,
    reorderings: u64,
}

impl Host {
    fn take(&mut self, track: &Track) {
        let (Some(first), Some(last)) = (&track.first.info, &track.last.info) else { return };
        let gained = |of: fn(&TcpInfo) -> Option<u32>| gained(first, last, of);
        let again = gained(|info| Some(info.retransmitted));
        self.connections += 1;
        self.hit += usize::from(again > 0);
        self.sent += gained(|info| info.data_segments_out.or(info.segments_out));
        self.again += again;
        self.duplicates += gained(|info| info.duplicates);
        self.reorderings += gained(|info| info.reorderings);
    }
}

fn finding(ip: &IpAddr, host: &Host) -> Finding {
    let &Host { connections, hit, sent, again, duplicates, reorderings } = host;
    // What was there already was sent in vain: it was late, not lost.
    let is_in_vain = duplicates * 2 > again;
    let cause = if is_in_vain {
        "Most of what was sent again had arrived: packets or acknowledgements change their order \
         or are late, and are taken for lost."
    } else {
        "Packets are lost on the way: a queue that overflows, a bad cable or a wrong duplex, a \
         policer."
    };
    let mut evidence = vec![format!(
        "{again} of {sent} segments ({}) sent again while we looked, on {hit} of {}",
        percent(again, sent),
        plural(connections, "connection"),
    )];
    if duplicates + reorderings > 0 {
        evidence.push(format!("{duplicates} of them had arrived; {reorderings} changes of order"));
    }
    Finding {
        kind: "tcp.retransmissions",
        severity: Severity::Warning,
        reach: hit,
        what: format!("segments to {ip} are sent more than once"),
        evidence,
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(
            "look at the drops of each interface on the way (ip -s link, ethtool -S), and of its \
             queues (tc -s qdisc)",
        )],
    }
}
