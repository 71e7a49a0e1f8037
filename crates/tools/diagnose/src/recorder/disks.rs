//! Disks beside what they were qualified for, and where their slow writes lie.

use std::collections::BTreeMap;

use units::number::{permille, sum};

use super::{Member, State};
use findings::words::{percent, plural};
use findings::{Finding, Remedy, Severity};

/// Nine tenths of what is guaranteed.
const NEAR_TENTHS: u64 = 9;
/// A share of the slow writes that points at one place, in percent.
const POINTS_AT: u64 = 80;
/// Fewer slow writes show nothing.
const SLOW_LEAST: u64 = 5;

pub(super) fn findings(state: &State) -> Vec<Finding> {
    [headroom(state), drift(state), slow_writes(state), index(state)]
        .into_iter()
        .flatten()
        .collect()
}

fn headroom(state: &State) -> Option<Finding> {
    let headroom = state.headroom?;
    let (offered, guaranteed) = (headroom.offered_max, headroom.guaranteed);
    if offered.saturating_mul(10) < guaranteed.saturating_mul(NEAR_TENTHS) {
        return None;
    }
    let is_above = offered > guaranteed;
    let megabytes = |bytes: u64| format!("{} MB/s", bytes / 1_000_000);
    Some(Finding {
        kind: "recorder.headroom",
        severity: if is_above { Severity::Problem } else { Severity::Warning },
        reach: 1,
        what: format!(
            "{} arrived in ten seconds, {} the {} that the disks guarantee",
            megabytes(offered),
            if is_above { "above" } else { "near" },
            megabytes(guaranteed)
        ),
        evidence: vec![format!("{} of the guarantee", percent(offered, guaranteed))],
        cause: "The guarantee holds over the whole surface, its slowest part included. Above it \
                packets are lost as soon as the slow part is written."
            .to_owned(),
        remedies: vec![
            Remedy {
                what: "see how many disks it takes".to_owned(),
                now: vec!["wirespool qualify plan --rate RATE --disk REPORT.json".to_owned()],
                for_good: Vec::new(),
            },
            Remedy::by_hand("leave out what is not needed: record --class"),
        ],
    })
}

/// Members that give less than they did.
fn drift(state: &State) -> Option<Finding> {
    let slower: Vec<&Member> =
        state.members.iter().filter(|member| member.times_slower > 0).collect();
    if slower.is_empty() {
        return None;
    }
    let is_now = slower.iter().any(|member| member.is_slower);
    let line = |member: &&Member| {
        let now = if member.is_slower { ", and does now" } else { "" };
        let times = plural(usize::try_from(member.times_slower).unwrap_or(usize::MAX), "time");
        format!("{}: gave less under full load {times}{now}", member.path)
    };
    Some(Finding {
        kind: "recorder.drift",
        severity: if is_now { Severity::Problem } else { Severity::Warning },
        reach: slower.len(),
        what: format!(
            "{} slower than qualified",
            if slower.len() == 1 {
                "a disk is".to_owned()
            } else {
                format!("{} disks are", slower.len())
            }
        ),
        evidence: slower.iter().map(line).collect(),
        cause:
            "A disk that wears, is hot, rewrites sectors or shares its cable gives less than on \
                the first day; so does a disk that another program uses."
                .to_owned(),
        remedies: vec![
            Remedy {
                what: "measure again, and see what changed".to_owned(),
                now: vec![
                    "wirespool qualify VOLUME".to_owned(),
                    "wirespool qualify diff OLD.json NEW.json".to_owned(),
                ],
                for_good: Vec::new(),
            },
            Remedy::by_hand("replace it while the others still hold everything: wirespool replace"),
        ],
    })
}

/// Slow writes, and what most of them have in common.
fn slow_writes(state: &State) -> Option<Finding> {
    if state.slow_writes < SLOW_LEAST {
        return None;
    }
    let mut evidence = vec![format!(
        "{} writes took longer than {} ms",
        state.slow_writes,
        state.slow_limit_ns / 1_000_000
    )];
    let pointed = [one_member(state), one_zone(state), one_place(state)];
    let points = pointed.iter().any(Option::is_some);
    evidence.extend(pointed.into_iter().flatten());
    Some(Finding {
        kind: "recorder.slow_writes",
        severity: if points { Severity::Warning } else { Severity::Note },
        reach: usize::try_from(state.slow_writes).unwrap_or(usize::MAX),
        what: "some writes took far longer than others".to_owned(),
        evidence,
        cause: if points {
            "They have a place in common: the disk, or that part of it, is worse than the rest."
        } else {
            "They have no place in common: something else used the disks, or all of them stalled \
             together, as when a cache is flushed."
        }
        .to_owned(),
        remedies: vec![Remedy {
            what: "see who else uses the disks meanwhile".to_owned(),
            now: vec!["wirespool diagnose io".to_owned()],
            for_good: Vec::new(),
        }],
    })
}

fn one_member(state: &State) -> Option<String> {
    let all = sum(state.members.iter().map(|member| member.slow_writes));
    let worst = state.members.iter().max_by_key(|member| member.slow_writes)?;
    let points =
        state.members.len() > 1 && permille(worst.slow_writes, all) >= 10 * POINTS_AT && all > 0;
    points.then(|| format!("{} of them on {}", percent(worst.slow_writes, all), worst.path))
}

fn one_zone(state: &State) -> Option<String> {
    let mut zones: BTreeMap<u16, u64> = BTreeMap::new();
    for zone in state.slow.iter().filter_map(|slow| slow.zone) {
        *zones.entry(zone).or_default() += 1;
    }
    let all = sum(zones.values().copied());
    let (zone, &most) = zones.iter().max_by_key(|(_, count)| **count)?;
    let points = all >= SLOW_LEAST && permille(most, all) >= 10 * POINTS_AT;
    points.then(|| format!("{} of the slowest in zone {zone}", percent(most, all)))
}

/// A part of one member's surface whose longest write is far above that of every other part.
fn one_place(state: &State) -> Option<String> {
    state.members.iter().find_map(|member| {
        let written = member.places.iter().filter(|(writes, _)| *writes > 0).count();
        let mut longest: Vec<u64> = member.places.iter().map(|(_, longest)| *longest).collect();
        let worst = longest.iter().copied().max()?;
        let place = longest.iter().position(|&one| one == worst)?;
        longest.remove(place);
        let next = longest.into_iter().max().unwrap_or(0);
        let points = written >= 8 && worst > state.slow_limit_ns && worst > next.saturating_mul(4);
        points.then(|| {
            let parts = member.places.len();
            format!(
                "{}: the longest by far in part {} of {parts} of its surface",
                member.path,
                place + 1
            )
        })
    })
}

/// The recorder drops the index before it drops packets.
fn index(state: &State) -> Option<Finding> {
    let behind = state.unindexed.max(state.unread);
    if behind == 0 {
        return None;
    }
    Some(Finding {
        kind: "recorder.index_behind",
        severity: Severity::Warning,
        reach: usize::try_from(behind).unwrap_or(usize::MAX),
        what: "the recorder left packets unindexed so that it lost none".to_owned(),
        evidence: vec![
            format!("{} packets were not looked at for names", state.unread),
            format!(
                "{} packets have no row yet; they are indexed when there is time",
                state.unindexed
            ),
        ],
        cause: "Sessions, names and the index had too little processor time for what arrived."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "a processor for each thread of the recorder, and nothing else on them: record --cpus",
        )],
    })
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::super::{Headroom, Recording, SlowWrite, diagnose};
    use super::*;

    fn kinds(state: State) -> Vec<(&'static str, Severity)> {
        let found = diagnose(&Recording { state: Some(state), ..Recording::default() });
        found.findings.iter().map(|finding| (finding.kind, finding.severity)).collect()
    }

    fn member(path: &str, slow_writes: u64) -> Member {
        Member { path: path.to_owned(), slow_writes, ..Member::default() }
    }

    #[test]
    fn what_arrives_is_set_beside_what_is_guaranteed() {
        let of = |offered_max| {
            let headroom = Some(Headroom { guaranteed: 100, offered_max });
            kinds(State { headroom, ..State::default() })
        };
        assert_eq!(of(89), []);
        assert_eq!(of(90), [("recorder.headroom", Severity::Warning)]);
        assert_eq!(of(101), [("recorder.headroom", Severity::Problem)]);
    }

    #[test]
    fn a_disk_that_gives_less_than_it_did_is_named() {
        let slower = Member { times_slower: 2, is_slower: true, ..member("/dev/sdc", 0) };
        let members = vec![member("/dev/sdb", 0), slower];
        let state = State { members, ..State::default() };
        let found = diagnose(&Recording { state: Some(state), ..Recording::default() });
        let finding = &found.findings[0];
        assert_eq!((finding.kind, finding.severity), ("recorder.drift", Severity::Problem));
        assert_eq!(finding.evidence, ["/dev/sdc: gave less under full load 2 times, and does now"]);
    }

    #[test]
    fn slow_writes_point_at_a_member_a_zone_or_nothing() {
        let slow =
            |zone| SlowWrite { at: Timestamp(0), member: Some(0), zone: Some(zone), latency_ns: 1 };
        let even = State {
            slow_writes: 10,
            slow: (0..10).map(slow).collect(),
            members: vec![member("a", 5), member("b", 5)],
            ..State::default()
        };
        assert_eq!(kinds(even.clone()), [("recorder.slow_writes", Severity::Note)]);
        let evidence = |state: State| {
            let found = diagnose(&Recording { state: Some(state), ..Recording::default() });
            assert_eq!(found.findings[0].severity, Severity::Warning);
            found.findings[0].evidence[1].clone()
        };
        let one = State { members: vec![member("a", 1), member("b", 9)], ..even.clone() };
        assert_eq!(evidence(one), "90 % of them on b");
        let zone = State { slow: [slow(3); 9].into(), ..even.clone() };
        assert_eq!(evidence(zone), "100 % of the slowest in zone 3");
        let mut places = vec![(9, 10); 16];
        places[4] = (9, 90);
        let place = Member { places, ..member("a", 5) };
        let surface = State { members: vec![place, member("b", 5)], slow_limit_ns: 50, ..even };
        assert!(evidence(surface).ends_with("part 5 of 16 of its surface"));
    }

    #[test]
    fn an_index_that_gave_way_is_told() {
        let state = State { unread: 5, ..State::default() };
        assert_eq!(kinds(state), [("recorder.index_behind", Severity::Warning)]);
    }
}
