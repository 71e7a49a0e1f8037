//! A program holds its own short writes back.
//!
//! Mechanism: with `TCP_CORK`, or `MSG_MORE` at its last write, the kernel sends a segment that is
//! not full only after 200 ms (tcp(7)). Refuted where something is under way (then it waits for an
//! acknowledgement), where the window has no space, and by segments that are full.

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::{Machine, program};
use findings::words::microseconds;
use findings::{Finding, Remedy, Severity};

/// A segment waits so long in the mean: what the kernel waits, less what is written late.
const WAIT_US: core::ops::Range<u64> = 100_000..260_000;
const SEGMENTS_MIN: u64 = 10;

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let hit: Vec<&Member<'_>> = group.members.iter().filter(|member| waits(member)).collect();
    let first = hit.first()?;
    let looks = &first.track.looks;
    let (segments, bytes) = first.sent();
    let wait_us = u32::try_from(first.busy_us_each().unwrap_or(0)).unwrap_or(u32::MAX);
    let program = program(first.track.owner.as_deref());
    let finding = Finding {
        kind: "tcp.corked",
        severity: Severity::Warning,
        reach: hit.len(),
        what: format!("{program} holds back what it writes to {}", group.name(machine.watch)),
        evidence: vec![
            group::lines(machine, &hit),
            format!(
                "at {} of {} looks less than a segment waited to be sent, with nothing under way \
                 and space in the window",
                looks.corked, looks.all
            ),
            format!(
                "{segments} segments with {bytes} bytes, each of which waited {} in the mean; the \
                 round trip is {}",
                microseconds(wait_us),
                microseconds(first.last.rtt_us)
            ),
        ],
        cause:
            "The program has told the kernel that more comes (TCP_CORK, or MSG_MORE at its last \
                write), and nothing more does: the kernel sends after 200 ms what is not a full \
                segment."
                .to_owned(),
        remedies: vec![Remedy::by_hand(
            "in the program: take TCP_CORK off when a message is complete, and write its last part \
             without MSG_MORE",
        )],
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn waits(member: &Member<'_>) -> bool {
    let (segments, bytes) = member.sent();
    let looks = &member.track.looks;
    segments >= SEGMENTS_MIN
        && bytes * 2 < segments * u64::from(member.last.send_mss)
        && looks.corked.saturating_mul(2) >= looks.all
        && member.busy_us_each().is_some_and(|wait| WAIT_US.contains(&wait))
}
