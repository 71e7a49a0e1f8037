//! Two speeds among connections that should be alike, and what separates them.
//!
//! Mechanism: what treats some connections in another way than others has something in common with
//! those. Refuted where the slow ones are as fast as their programs want (the kernel marks such
//! rates, at the end that sends): programs have more to say here than there. Which process it is
//! separates rates only where each sender is seen, and is not held up by its program.

use std::collections::BTreeMap;

use network::sockets::TcpInfo;
use statistics::{Explanation, Factor, Levels, Modes, explain, modes};
use units::Random;
use units::number::{real, whole};

use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member};
use crate::findings::machine::Machine;
use crate::watch::Key;
use findings::words::{bits_per_second, microseconds, plural, some};
use findings::{Finding, Remedy, Severity};

/// A connection that carried less has no rate to speak of.
const BYTES_MIN: u64 = 1 << 20;
/// The same of round trips.
const ROUND_TRIPS_MIN: u64 = 64 << 10;
/// The faster ones are so many times as fast at least.
const RATIO_MIN: f64 = 1.1;
/// The same of their mean rates, where round trips tell them apart.
const MEANS_RATIO_MIN: f64 = 1.5;
/// What separates them explains so much of who is slow at least.
const SHARE_MIN: f64 = 0.8;
/// Of shuffling: the same sockets give the same finding.
const SEED: u64 = 1;

/// A member with what it carried.
struct Flow<'g, 'w> {
    member: &'g Member<'w>,
    bits_per_s: f64,
}

/// By what connections fall into two groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Measure {
    Rate,
    /// Connections share a rate unevenly, but all that stand in one queue wait as long.
    RoundTrip,
}

/// Slow and fast connections, and what separates them.
struct Split<'f, 'g, 'w> {
    slow: Vec<&'f Flow<'g, 'w>>,
    fast: Vec<&'f Flow<'g, 'w>>,
    measure: Measure,
    /// The best first.
    explained: Vec<Explanation>,
}

/// Two modes in the rates or round trips of a group, where something that is known of its
/// connections separates them. Rates that differ without one are no finding: programs have more to
/// say here than there.
pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let watch = machine.watch;
    let flows = |least: u64| -> Vec<Flow<'_, '_>> {
        let members = group.members.iter().filter(|member| carried(member) >= least);
        let rate = |member| real(carried(member)) * 8.0 / watch.seconds();
        members.map(|member| Flow { member, bits_per_s: rate(member) }).collect()
    };
    let (fast_ones, all) = (flows(BYTES_MIN), flows(ROUND_TRIPS_MIN));
    let by_rate = split(&fast_ones, Measure::Rate);
    let by_rate = by_rate.filter(|split| !is_by_programs(machine, split));
    let by_round_trip = || split(&all, Measure::RoundTrip);
    let split = by_rate.or_else(by_round_trip).filter(|split| !is_by_programs(machine, split))?;
    let best = split.explained.first()?;
    let both_of_best = both(&best.name, &split.slow, &split.fast);
    let finding = Finding {
        kind: "tcp.two_speeds",
        severity: Severity::Warning,
        reach: split.slow.len(),
        what: format!(
            "connections to {} run at two speeds; what separates them is {}",
            group.name(watch),
            best.name
        ),
        evidence: evidence(machine, &split),
        cause: both_of_best.map_or_else(
            || format!("Of all that is known of these connections, {} differs.", best.name),
            |both| format!("Of all that is known of these connections this differs. {both}."),
        ),
        remedies: vec![Remedy::by_hand(
            "see why it differs between these connections: another finding may say so",
        )],
    };
    let path = group::path(machine, split.slow.iter().map(|flow| flow.member));
    Some(Found::new(finding, path))
}

/// Half of the slow connections or more are as fast as their programs want, or processes separate
/// them of which that is not known.
fn is_by_programs(machine: &Machine<'_>, split: &Split<'_, '_, '_>) -> bool {
    let known: Vec<Option<bool>> =
        split.slow.iter().map(|flow| is_limited_by_program(machine, flow.member)).collect();
    let limited = known.iter().filter(|limited| **limited == Some(true)).count();
    let is_process = split.explained.first().is_some_and(|best| best.name == PROCESS);
    limited * 2 >= known.len() || (is_process && known.contains(&None))
}

/// Whether the program at the end that sends hands over less than the network takes; `None` where
/// that end is not on this machine.
fn is_limited_by_program(machine: &Machine<'_>, member: &Member<'_>) -> Option<bool> {
    let sent = member.gained(|info| info.bytes_acked);
    let received = member.gained(|info| info.bytes_received);
    let sender = if sent >= received {
        member.track
    } else {
        machine.other_end(member.key, member.track)?.1
    };
    let (first, last) = (sender.first.info.as_ref()?, sender.last.info.as_ref()?);
    let busy_us = group::gained(first, last, |info: &TcpInfo| info.busy_us);
    let is_marked =
        sender.looks.app_limited.saturating_mul(5) >= sender.looks.all.saturating_mul(4);
    let is_idle = busy_us.saturating_mul(2000) < machine.watch.ns_positive();
    Some(is_marked && (last.busy_us.is_none() || is_idle))
}

fn split<'f, 'g, 'w>(flows: &'f [Flow<'g, 'w>], measure: Measure) -> Option<Split<'f, 'g, 'w>> {
    let value = |flow: &Flow<'_, '_>| match measure {
        Measure::Rate => flow.bits_per_s,
        Measure::RoundTrip => real(flow.member.track.looks.rtt_us_mean()),
    };
    let values: Vec<f64> = flows.iter().map(value).collect();
    let found = modes(&values).filter(Modes::is_bimodal)?;
    if found.upper.median < found.lower.median * RATIO_MIN {
        return None;
    }
    let is_upper: Vec<bool> = values.iter().map(|value| found.is_upper(*value)).collect();
    let known = known(flows);
    let factors: Vec<Factor<'_>> =
        known.iter().map(|(name, levels)| Factor { name, levels: Levels::Kinds(levels) }).collect();
    let explained = explain(&is_upper, &factors, &mut Random::new(SEED));
    explained.first().filter(|best| best.share >= SHARE_MIN)?;
    let (upper, lower): (Vec<_>, Vec<_>) =
        flows.iter().partition(|flow| found.is_upper(value(flow)));
    let (slow, fast) = match measure {
        Measure::Rate => (lower, upper),
        Measure::RoundTrip => (upper, lower),
    };
    // Longer round trips that carry as much are no lower speed.
    let is_slower = mean(&fast) >= mean(&slow) * MEANS_RATIO_MIN;
    (measure == Measure::Rate || is_slower).then_some(Split { slow, fast, measure, explained })
}

/// Mean rate in bits a second.
fn mean(flows: &[&Flow<'_, '_>]) -> f64 {
    let sum: f64 = flows.iter().map(|flow| flow.bits_per_s).sum();
    sum / real(u64::try_from(flows.len()).unwrap_or(u64::MAX).max(1))
}

/// The one in the middle.
fn median(flows: &[&Flow<'_, '_>], of: impl Fn(&Flow<'_, '_>) -> u64) -> u64 {
    let mut values: Vec<u64> = flows.iter().map(|flow| of(flow)).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn evidence(machine: &Machine<'_>, split: &Split<'_, '_, '_>) -> Vec<String> {
    let Split { slow, fast, measure, explained } = split;
    let rate = |flows: &[&Flow<'_, '_>]| {
        let connections = plural(flows.len(), "connection");
        match measure {
            Measure::Rate => {
                let rate = bits_per_second(median(flows, |flow| whole(flow.bits_per_s)));
                format!("{connections} near {rate}")
            }
            Measure::RoundTrip => {
                let rtt_us = median(flows, |flow| flow.member.track.looks.rtt_us_mean());
                let rtt = microseconds(u32::try_from(rtt_us).unwrap_or(u32::MAX));
                let rate = bits_per_second(whole(mean(flows)));
                format!("{connections} with round trips near {rtt}, {rate} in the mean")
            }
        }
    };
    let line = |name: &str| both(name, slow, fast).unwrap_or_else(|| name.to_owned());
    let mut lines = vec![
        rate(fast),
        rate(slow),
        format!("slow: {}", some(slow.iter().map(|flow| flow.member.line(machine)))),
    ];
    lines.extend(explained.first().map(|best| {
        format!("{} explains {:.0} % of which is which", line(&best.name), best.share * 100.0)
    }));
    let also: Vec<String> = explained.iter().skip(1).map(|other| line(&other.name)).collect();
    if !also.is_empty() {
        lines.push(format!("so do, less or as much: {}", also.join("; ")));
    }
    lines
}

/// Which values of a property the slow ones have, and which the fast ones.
fn both(name: &str, slow: &[&Flow<'_, '_>], fast: &[&Flow<'_, '_>]) -> Option<String> {
    let (_, read) = FACTS.iter().find(|(known, _)| *known == name)?;
    let [slow, fast] = [slow, fast].map(|flows| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for flow in flows {
            *counts.entry(read(flow.member)).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        some(counts.into_iter().map(|(value, count)| format!("{value} ({count})")))
    });
    Some(format!("{name}: slow {slow}; fast {fast}"))
}

const PROCESS: &str = "the process";

type Read = fn(&Member<'_>) -> String;

/// What is known of a connection.
const FACTS: [(&str, Read); 9] = [
    ("selective acknowledgements", |member| yes(member.last.options.sack)),
    ("window scale", |member| yes(member.last.options.window_scale)),
    ("timestamps", |member| yes(member.last.options.timestamps)),
    ("the segment size", |member| member.last.send_mss.to_string()),
    ("the path's largest packet", |member| member.last.path_mtu.to_string()),
    ("congestion control", |member| {
        member.track.last.congestion.clone().unwrap_or_else(|| "unknown".to_owned())
    }),
    ("the other host", |member| member.track.last.remote.ip().to_canonical().to_string()),
    ("our address", |member| member.track.last.local.ip().to_canonical().to_string()),
    (PROCESS, |member| {
        let owner = member.track.owner.as_ref();
        owner.map_or_else(|| "of no known process".to_owned(), ToString::to_string)
    }),
];

fn yes(has: bool) -> String {
    if has { "yes" } else { "no" }.to_owned()
}

/// A slow connection of a group and a fast one, where it has two speeds.
pub(super) fn pair(machine: &Machine<'_>, group: &Group<'_>) -> Option<(Key, Key)> {
    finding(machine, group)?;
    let flows = || group.members.iter().filter(|member| carried(member) >= BYTES_MIN);
    let slow = flows().min_by_key(|member| carried(member))?;
    let fast = flows().max_by_key(|member| carried(member))?;
    Some((slow.key, fast.key))
}

/// What a member carried during the watch, both ways.
fn carried(member: &Member<'_>) -> u64 {
    let acked = member.gained(|info| info.bytes_acked);
    acked.saturating_add(member.gained(|info| info.bytes_received))
}

/// What is known of each connection, as numbers for equal things.
fn known(flows: &[Flow<'_, '_>]) -> Vec<(&'static str, Vec<u32>)> {
    let levels = |read: Read| -> Vec<u32> {
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let number = |flow: &Flow<'_, '_>| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(read(flow.member)).or_insert(next)
        };
        flows.iter().map(number).collect()
    };
    // With a kind for each connection everything is explained, and nothing is.
    let few = |kinds: &[u32]| {
        let most = kinds.iter().max().map_or(0, |most| usize::try_from(*most).unwrap_or(0) + 1);
        most > 1 && most * 3 <= kinds.len()
    };
    let mut known: Vec<(&'static str, Vec<u32>)> = FACTS
        .into_iter()
        .map(|(name, read)| (name, levels(read)))
        .filter(|(_, kinds)| few(kinds))
        .collect();
    // A program that uses one address, or one host, differs by that: it says no more.
    let is_other = |(name, kinds): &(&str, Vec<u32>)| (*name != PROCESS).then(|| kinds.clone());
    let others: Vec<Vec<u32>> = known.iter().filter_map(is_other).collect();
    known.retain(|(name, kinds)| *name != PROCESS || !others.contains(kinds));
    known
}
