//! Connections with a small congestion window beside others to the same place with a large one.
//!
//! Mechanism: each loss makes a window smaller, and another way may hold less. Refuted where the
//! program hands over less than the window takes: a larger one would change nothing.

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use crate::watch::Key;
use findings::words::{plural, some};
use findings::{Finding, Remedy, Severity};

/// Fewer are no group.
const MEMBERS_MIN: usize = 4;
/// Segments after which a window has had time to grow.
const SEGMENTS_MIN: u32 = 200;
/// So many times smaller than that of the others.
const FACTOR: u32 = 8;

/// Those that stay behind, if they are fewer than half.
pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let has_sent = |member: &&Member<'_>| {
        member.last.data_segments_out.is_some_and(|segments| segments >= SEGMENTS_MIN)
    };
    // A window without scale is small for another reason, which has a finding of its own.
    let is_whole =
        |member: &&Member<'_>| member.last.options.window_scale && member.last.options.sack;
    let senders: Vec<&Member<'_>> =
        group.members.iter().filter(has_sent).filter(is_whole).collect();
    if senders.len() < MEMBERS_MIN {
        return None;
    }
    let mut windows: Vec<u32> =
        senders.iter().map(|member| member.last.congestion_window).collect();
    windows.sort_unstable();
    let median = *windows.get(windows.len() / 2)?;
    let small: Vec<&Member<'_>> = senders
        .iter()
        .copied()
        .filter(|member| member.last.congestion_window.saturating_mul(FACTOR) <= median)
        .filter(|member| !has_little(member))
        .collect();
    if small.is_empty() || small.len() * 2 >= senders.len() {
        return None;
    }
    let with_losses = small.iter().filter(|member| member.last.retransmitted > 0).count();
    let evidence = vec![
        format!("the others have {median} segments in the middle"),
        format!(
            "small: {}",
            some(small.iter().map(|member| {
                format!("{} with {}", member.line(machine), member.last.congestion_window)
            }))
        ),
        format!("{with_losses} of them have sent segments again"),
    ];
    let cause = if with_losses * 2 > small.len() {
        "They lost packets, and each loss makes the window smaller."
    } else {
        "They have not lost packets: they take another way than the others, or have not sent \
         for long enough."
    };
    let finding = Finding {
        kind: "tcp.small_window",
        severity: Severity::Warning,
        reach: small.len(),
        what: format!(
            "{} to {} may have far less under way than the other {}",
            plural(small.len(), "connection"),
            group.name(machine.watch),
            senders.len() - small.len()
        ),
        evidence,
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(
            "compare where these connections go (ip route get, the hash of a bond), and what is \
             lost there",
        )],
    };
    Some(Found::new(finding, group::path(machine, small.into_iter())))
}

/// The program had handed over less than the window takes at most looks.
fn has_little(member: &Member<'_>) -> bool {
    let looks = &member.track.looks;
    looks.app_limited.saturating_mul(2) > looks.all
}

/// A connection with a small window and one with a large one, where they differ.
pub(super) fn pair(machine: &Machine<'_>, group: &Group<'_>) -> Option<(Key, Key)> {
    finding(machine, group)?;
    let senders = || {
        let has_sent = |member: &&Member<'_>| {
            member.last.data_segments_out.is_some_and(|segments| segments >= SEGMENTS_MIN)
        };
        group.members.iter().filter(has_sent)
    };
    let small = senders().min_by_key(|member| member.last.congestion_window)?;
    let large = senders().max_by_key(|member| member.last.congestion_window)?;
    Some((small.key, large.key))
}
