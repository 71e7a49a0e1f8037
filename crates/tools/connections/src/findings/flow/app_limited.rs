//! A connection waits for its program, not for the network: a note, so that nobody looks for the
//! reason in the network.
//!
//! Mechanism: the kernel counts the time in which there is something to send, and marks rates that
//! the program limited. Refuted by a connection that carries little: that it waits means nothing.

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use findings::words::{bits_per_second, percent, plural, some};
use findings::{Finding, Remedy, Severity};

/// A connection that sends less during the watch is no transfer.
const BYTES_MIN: u64 = 4 << 20;

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let hit: Vec<&Member<'_>> =
        group.members.iter().filter(|member| waits(machine, member)).collect();
    let first = hit.first()?;
    let ns = machine.watch.ns_positive();
    let busy_us: u64 = hit.iter().map(|member| member.gained(|info| info.busy_us)).sum();
    let bytes: u64 = hit.iter().map(|member| member.gained(|info| info.bytes_acked)).sum();
    let count = u64::try_from(hit.len()).unwrap_or(u64::MAX);
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(ns);
    let owner = first.track.owner.as_ref();
    let program = owner.map_or_else(|| "its program".to_owned(), ToString::to_string);
    let finding = Finding {
        kind: "tcp.app_limited",
        severity: Severity::Note,
        reach: hit.len(),
        what: format!(
            "what is sent to {} waits for {program}, not for the network",
            group.name(machine.watch)
        ),
        evidence: vec![
            format!(
                "in {} of the time there was something to send, on {}: {}",
                percent(busy_us.saturating_mul(1000), ns.saturating_mul(count)),
                plural(hit.len(), "connection"),
                some(hit.iter().map(|member| member.line(machine)))
            ),
            format!(
                "{} sent; at {} of {} looks the kernel had marked the rate as limited by the \
                 program",
                bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX)),
                first.track.looks.app_limited,
                first.track.looks.all
            ),
        ],
        cause: "The program hands over less than the network takes: it computes, reads a disk, \
                waits for an answer, or limits its rate itself."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "see what it waits for: wirespool diagnose calls --pid PID",
        )],
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn waits(machine: &Machine<'_>, member: &Member<'_>) -> bool {
    let looks = &member.track.looks;
    let busy_us = member.gained(|info| info.busy_us);
    member.last.busy_us.is_some()
        && member.gained(|info| info.bytes_acked) >= BYTES_MIN
        && busy_us.saturating_mul(2000) < machine.watch.ns_positive()
        && looks.app_limited.saturating_mul(5) >= looks.all.saturating_mul(4)
        && looks.all > 1
}
