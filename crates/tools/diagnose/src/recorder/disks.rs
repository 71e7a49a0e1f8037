//! Disks beside what they were qualified for, and where their slow writes lie.

use std::collections::BTreeMap;

use events::DiskWatch;
use recording::State;
use units::number::{permille, sum};

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
    let headroom = state.now.disks.headroom.as_ref()?;
    let (offered, guaranteed) = (headroom.offered_bytes_per_s_max, headroom.guaranteed_bytes_per_s);
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
    let devices = state.now.disks.devices.iter();
    let slower: Vec<&DiskWatch> =
        devices.filter(|device| device.slower_than_qualified > 0).collect();
    if slower.is_empty() {
        return None;
    }
    let is_now = slower.iter().any(|device| device.is_slower_than_qualified);
    let line = |device: &&DiskWatch| {
        let now = if device.is_slower_than_qualified { ", and does now" } else { "" };
        let times = usize::try_from(device.slower_than_qualified).unwrap_or(usize::MAX);
        format!("{}: gave less under full load {}{now}", device.path, plural(times, "time"))
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
    if state.now.disks.slow_writes < SLOW_LEAST {
        return None;
    }
    let mut evidence = vec![format!(
        "{} writes took longer than {} ms",
        state.now.disks.slow_writes,
        state.now.disks.slow_limit_ns / 1_000_000
    )];
    let pointed = [one_member(state), one_zone(state), one_place(state)];
    let points = pointed.iter().any(Option::is_some);
    evidence.extend(pointed.into_iter().flatten());
    Some(Finding {
        kind: "recorder.slow_writes",
        severity: if points { Severity::Warning } else { Severity::Note },
        reach: usize::try_from(state.now.disks.slow_writes).unwrap_or(usize::MAX),
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
    let devices = &state.now.disks.devices;
    let all = sum(devices.iter().map(|device| device.slow_writes));
    let worst = devices.iter().max_by_key(|device| device.slow_writes)?;
    let points = devices.len() > 1 && permille(worst.slow_writes, all) >= 10 * POINTS_AT && all > 0;
    points.then(|| format!("{} of them on {}", percent(worst.slow_writes, all), worst.path))
}

fn one_zone(state: &State) -> Option<String> {
    let mut zones: BTreeMap<u16, u64> = BTreeMap::new();
    for zone in state.now.disks.slow.iter().filter_map(|slow| slow.zone) {
        *zones.entry(zone).or_default() += 1;
    }
    let all = sum(zones.values().copied());
    let (zone, &most) = zones.iter().max_by_key(|(_, count)| **count)?;
    let points = all >= SLOW_LEAST && permille(most, all) >= 10 * POINTS_AT;
    points.then(|| format!("{} of the slowest in zone {zone}", percent(most, all)))
}

/// A part of one member's surface whose longest write is far above that of every other part.
fn one_place(state: &State) -> Option<String> {
    let limit_ns = state.now.disks.slow_limit_ns;
    state.now.disks.devices.iter().find_map(|device| {
        let written = device.places.iter().filter(|[writes, ..]| *writes > 0).count();
        let mut longest: Vec<u64> = device.places.iter().map(|[.., longest]| *longest).collect();
        let worst = longest.iter().copied().max()?;
        let place = longest.iter().position(|&one| one == worst)?;
        longest.remove(place);
        let next = longest.into_iter().max().unwrap_or(0);
        let points = written >= 8 && worst > limit_ns && worst > next.saturating_mul(4);
        points.then(|| {
            let parts = device.places.len();
            format!(
                "{}: the longest by far in part {} of {parts} of its surface",
                device.path,
                place + 1
            )
        })
    })
}

/// The recorder drops the index before it drops packets.
fn index(state: &State) -> Option<Finding> {
    let behind = state.now.unindexed.max(state.unread);
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
                state.now.unindexed
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
    use events::{Disks, Headroom, SlowWrite};
    use recording::Progress;

    use super::super::{Recording, diagnose};
    use super::*;

    fn of_disks(disks: Disks) -> State {
        State { now: Progress { disks, ..Progress::default() }, ..State::default() }
    }

    fn kinds(state: State) -> Vec<(&'static str, Severity)> {
        let found = diagnose(&Recording { state: Some(state), ..Recording::default() });
        found.findings.iter().map(|finding| (finding.kind, finding.severity)).collect()
    }

    fn device(path: &str, slow_writes: u64) -> DiskWatch {
        DiskWatch { path: path.to_owned(), slow_writes, ..DiskWatch::default() }
    }

    #[test]
    fn what_arrives_is_set_beside_what_is_guaranteed() {
        let of = |offered_bytes_per_s_max| {
            let mut headroom = Headroom::default();
            headroom.guaranteed_bytes_per_s = 100;
            headroom.offered_bytes_per_s_max = offered_bytes_per_s_max;
            kinds(of_disks(Disks { headroom: Some(headroom), ..Disks::default() }))
        };
        assert_eq!(of(89), []);
        assert_eq!(of(90), [("recorder.headroom", Severity::Warning)]);
        assert_eq!(of(101), [("recorder.headroom", Severity::Problem)]);
    }

    #[test]
    fn a_disk_that_gives_less_than_it_did_is_named() {
        let slower = DiskWatch {
            slower_than_qualified: 2,
            is_slower_than_qualified: true,
            ..device("/dev/sdc", 0)
        };
        let devices = vec![device("/dev/sdb", 0), slower];
        let state = of_disks(Disks { devices, ..Disks::default() });
        let found = diagnose(&Recording { state: Some(state), ..Recording::default() });
        let finding = &found.findings[0];
        assert_eq!((finding.kind, finding.severity), ("recorder.drift", Severity::Problem));
        assert_eq!(finding.evidence, ["/dev/sdc: gave less under full load 2 times, and does now"]);
    }

    #[test]
    fn slow_writes_point_at_a_member_a_zone_or_nothing() {
        let slow = |zone| SlowWrite { zone: Some(zone), latency_ns: 1, ..SlowWrite::default() };
        let even = Disks {
            slow_writes: 10,
            slow: (0..10).map(slow).collect(),
            devices: vec![device("a", 5), device("b", 5)],
            ..Disks::default()
        };
        assert_eq!(kinds(of_disks(even.clone())), [("recorder.slow_writes", Severity::Note)]);
        let evidence = |disks: Disks| {
            let state = Some(of_disks(disks));
            let found = diagnose(&Recording { state, ..Recording::default() });
            assert_eq!(found.findings[0].severity, Severity::Warning);
            found.findings[0].evidence[1].clone()
        };
        let one = Disks { devices: vec![device("a", 1), device("b", 9)], ..even.clone() };
        assert_eq!(evidence(one), "90 % of them on b");
        let zone = Disks { slow: [slow(3); 9].into(), ..even.clone() };
        assert_eq!(evidence(zone), "100 % of the slowest in zone 3");
        let mut places = vec![[9, 0, 0, 10]; 16];
        places[4] = [9, 0, 0, 90];
        let place = DiskWatch { places, ..device("a", 5) };
        let surface = Disks { devices: vec![place, device("b", 5)], slow_limit_ns: 50, ..even };
        assert!(evidence(surface).ends_with("part 5 of 16 of its surface"));
    }

    #[test]
    fn an_index_that_gave_way_is_told() {
        let state = State { unread: 5, ..State::default() };
        assert_eq!(kinds(state), [("recorder.index_behind", Severity::Warning)]);
    }
}
