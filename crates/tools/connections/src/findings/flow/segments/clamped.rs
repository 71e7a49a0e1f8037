//! Full segments are tiny: something clamps their size.
//!
//! Mechanism: each side announces in its SYN the largest segment that it takes (RFC 9293, 3.7.1),
//! and a box on the way may make that smaller. With segments of less than 536 bytes, which every
//! host takes, most of what goes over the way are headers, and each costs as much processor time as
//! a large one. Refuted by a path that takes no larger packets, by a receiver whose window is not
//! larger than two segments (the kernel halves it), and by segments that are not full.

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// What every host takes (RFC 9293, 3.7.1), less the option of timestamps.
const USUAL_MIN: u32 = 536 - 12;
/// Packets of a path that takes larger ones.
const PATH_MIN: u32 = 1000;
/// Headers of IPv6 and TCP with timestamps.
const HEADERS: u32 = 40 + 20 + 12;
const SEGMENTS_MIN: u64 = 200;

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let hit: Vec<&Member<'_>> = group.members.iter().filter(|member| is_small(member)).collect();
    let first = hit.first()?;
    let info = first.last;
    let (segments, bytes) = first.sent();
    let there = machine.other_end(first.key, first.track);
    let announced = there.and_then(|(_, other)| other.last.info).map(|info| info.advertised_mss);
    let mut evidence = vec![
        format!(
            "segments of {} bytes, on a path that takes packets of {}: {}",
            info.send_mss,
            info.path_mtu,
            some(hit.iter().map(|member| member.line(machine)))
        ),
        format!("{segments} segments for {bytes} bytes while we looked"),
    ];
    evidence.extend(
        announced.map(|mss| {
            format!("the other end, on this machine, announced that it takes {mss} bytes")
        }),
    );
    let is_rewritten = announced.map(|mss| mss > info.send_mss + HEADERS);
    let cause = match is_rewritten {
        Some(true) => "What the other end announced was larger: something on the way made it \
                       smaller (a rule that clamps the segment size: maxseg, TCPMSS)."
            .to_owned(),
        Some(false) => "The other end announced no more: TCP_MAXSEG in the program there, or \
                        `advmss` of its route."
            .to_owned(),
        None => "The other end announced no more (TCP_MAXSEG, `advmss` of a route), or something \
                 on the way made it smaller (a rule that clamps the segment size). What was seen \
                 here cannot tell."
            .to_owned(),
    };
    let finding = Finding {
        kind: "tcp.small_segments",
        severity: Severity::Warning,
        reach: hit.len(),
        what: format!(
            "{} to {} may send no more than {} bytes in a packet",
            plural(hit.len(), "connection"),
            group.name(machine.watch),
            info.send_mss
        ),
        evidence,
        cause,
        remedies: vec![
            Remedy::by_hand(
                "look for such a rule on both machines and between them: nft list ruleset | grep \
                 maxseg, iptables-save | grep TCPMSS; --clamp-mss-to-pmtu instead of a number",
            ),
            Remedy::by_hand(
                "compare the SYNs at both sides: tcpdump -v 'tcp[tcpflags] & tcp-syn != 0'; open \
                 the connections anew afterwards",
            ),
        ],
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn is_small(member: &Member<'_>) -> bool {
    let info = member.last;
    let (segments, bytes) = member.sent();
    let window = info.send_window.unwrap_or(0);
    let is_full = bytes * 2 >= segments * u64::from(info.send_mss);
    segments >= SEGMENTS_MIN
        && is_full
        && info.send_mss < USUAL_MIN
        && info.path_mtu >= PATH_MIN
        && window > info.send_mss.saturating_mul(4)
}
