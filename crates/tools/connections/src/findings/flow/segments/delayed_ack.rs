//! Small writes wait for acknowledgements that the other side delays.
//!
//! Mechanism: a program writes a request in two or more parts. The first is sent; the kernel holds
//! the next short one back until the first is acknowledged (Nagle, RFC 896), and the other side,
//! which waits for the rest, delays its acknowledgement by 40 ms (RFC 1122, 4.2.3.2). So on a short
//! way each exchange takes 40 ms. Refuted by segments that are full, by a way that is long itself,
//! by a window that is full, and where nothing is held back at looks.

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member, gained};
use crate::findings::machine::{Machine, program};
use findings::words::microseconds;
use findings::{Finding, Remedy, Severity};

/// The way itself takes less, in microseconds.
const WAY_MAX_US: u32 = 15_000;
/// A segment is under way so long in the mean: half of 40 ms where every other one waits, and up
/// to the 200 ms of other systems.
const WAIT_US: core::ops::Range<u64> = 8_000..220_000;
const SEGMENTS_MIN: u64 = 10;

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let hit: Vec<&Member<'_>> = group.members.iter().filter(|member| waits(member)).collect();
    let first = hit.first()?;
    let (segments, bytes) = first.sent();
    let mean_us = first.busy_us_each().unwrap_or(0);
    let program = program(first.track.owner.as_deref());
    let way = first.last.min_rtt_us.unwrap_or(0);
    let delayed: u64 =
        machine.watch.namespaces.values().map(|it| it.gained("TcpExtDelayedACKs")).sum();
    let finding = Finding {
        kind: "tcp.delayed_ack",
        severity: Severity::Warning,
        reach: hit.len(),
        what: format!(
            "small writes of {program} to {} wait for delayed acknowledgements",
            group.name(machine.watch)
        ),
        evidence: vec![
            group::lines(machine, &hit),
            format!(
                "{segments} segments with {bytes} bytes were under way {} each in the mean; the \
                 way takes {} (least round trip)",
                microseconds(u32::try_from(mean_us).unwrap_or(u32::MAX)),
                microseconds(way)
            ),
            format!(
                "at {} of {} looks a short segment was held back for an acknowledgement (Nagle); \
                 TcpExtDelayedACKs: {delayed} on this machine",
                first.track.looks.held, first.track.looks.all
            ),
        ],
        cause: "The program writes what belongs together in several small parts. The kernel holds \
                each further part back until the one before is acknowledged, and the other side \
                delays that by 40 ms because it waits for the rest."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("write the request at once: one write(), writev(), or MSG_MORE"),
            Remedy::by_hand("TCP_NODELAY in the program that writes"),
        ],
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn waits(member: &Member<'_>) -> bool {
    let (segments, bytes) = member.sent();
    let (info, looks) = (member.last, &member.track.looks);
    let is_small = bytes * 2 < segments * u64::from(info.send_mss);
    let is_near = info.min_rtt_us.is_some_and(|rtt| rtt > 0 && rtt <= WAY_MAX_US);
    let is_held = looks.held.saturating_mul(4) >= looks.all;
    let is_whole =
        gained(member.first, member.last, |info| Some(info.retransmitted)) * 20 < segments;
    let wait = member.busy_us_each().filter(|wait| {
        WAIT_US.contains(wait) && *wait >= u64::from(info.min_rtt_us.unwrap_or(u32::MAX)) * 3
    });
    segments >= SEGMENTS_MIN && is_small && is_near && is_held && is_whole && wait.is_some()
}
