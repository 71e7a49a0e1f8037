//! Segments that had to be sent again.
//!
//! Mechanism: what is not acknowledged in time is taken for lost and sent again. Refuted, as a
//! loss, where the other side reports that it had it already. A connection that stands still sends
//! one segment again and again, and has a finding of its own.

use std::collections::BTreeMap;
use std::net::IpAddr;

use network::sockets::TcpInfo;

use super::super::explain::{Found, Path};
use super::super::group::gained;
use super::super::machine::Machine;
use super::stalled;
use crate::watch::{Key, Track};
use findings::words::{percent, plural, some};
use findings::{Finding, Remedy, Severity};

/// Fewer are no finding.
const SEGMENTS_MIN: u64 = 50;
/// One in a hundred: below that it is hardly felt.
const SHARE: u64 = 100;
/// So few are a finding where they are many of what was sent, and the other side had not had them:
/// on a connection with questions and answers each costs a fifth of a second and more.
const FEW_MIN: u64 = 8;
const FEW_SHARE: u64 = 25;

/// Hosts towards which more than one segment in a hundred was sent again while we looked, or of a
/// few more than four.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Found> {
    let mut hosts: BTreeMap<(u64, IpAddr), Host<'_>> = BTreeMap::new();
    for (key, track) in &machine.watch.tracks {
        if stalled::stood_still(track) {
            continue;
        }
        let at = (key.namespace, track.last.remote.ip().to_canonical());
        hosts.entry(at).or_default().take(*key, track);
    }
    let is_bad = |host: &Host<'_>| {
        let lost = host.again.saturating_sub(host.duplicates);
        (host.again >= SEGMENTS_MIN && host.again * SHARE > host.sent)
            || (lost >= FEW_MIN && lost * FEW_SHARE > host.sent)
    };
    let bad = hosts.into_iter().filter(|(_, host)| is_bad(host));
    let found = |((inode, ip), host): ((u64, IpAddr), Host<'_>)| {
        let path = Path::of(machine, host.hit.iter().copied());
        Found::new(finding(machine, (inode, ip), &host), path)
    };
    bad.map(found).collect()
}

#[derive(Debug, Default)]
struct Host<'w> {
    connections: usize,
    hit: Vec<(Key, &'w Track)>,
    sent: u64,
    again: u64,
    duplicates: u64,
    reorderings: u64,
}

impl<'w> Host<'w> {
    fn take(&mut self, key: Key, track: &'w Track) {
        let (Some(first), Some(last)) = (&track.first.info, &track.last.info) else { return };
        let gained = |of: fn(&TcpInfo) -> Option<u32>| gained(first, last, of);
        let sent = gained(|info| info.data_segments_out.or(info.segments_out));
        // A SYN or FIN that is sent again is no segment with data.
        let again = gained(|info| Some(info.retransmitted)).min(sent);
        self.connections += 1;
        if again > 0 {
            self.hit.push((key, track));
        }
        self.sent += sent;
        self.again += again;
        self.duplicates += gained(|info| info.duplicates);
        self.reorderings += gained(|info| info.reorderings);
    }
}

fn finding(machine: &Machine<'_>, (inode, ip): (u64, IpAddr), host: &Host<'_>) -> Finding {
    let &Host { connections, sent, again, duplicates, reorderings, .. } = host;
    let hit = host.hit.len();
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
    let lines = host.hit.iter().map(|(key, track)| machine.line(*key, track));
    evidence.push(format!("sent again: {}", some(lines)));
    Finding {
        kind: "tcp.retransmissions",
        severity: Severity::Warning,
        reach: hit,
        what: format!("segments to {ip} are sent more than once{}", machine.inside(inode)),
        evidence,
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(
            "look at the drops of each interface on the way (ip -s link, ethtool -S), and of its \
             queues (tc -s qdisc)",
        )],
    }
}
