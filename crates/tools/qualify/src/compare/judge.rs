//! What the runs of a comparison say: how much targets differ, and why the runs of one do.

use std::collections::{BTreeMap, BTreeSet};

use statistics::{
    Cell, Column, Modes, Sample, Separation, changes, falling, interval, intraclass, modes, paired,
    separations,
};

use units::Random;

use super::runs::{Contender, EffectFound, FactorFound, Measure, RateChange, Run, TwoModes};
use crate::number::{real, to_u64, whole};

/// A window of a run, where it stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    run: &'a Run,
    at: usize,
    begin_ns: u64,
    bytes: u64,
    rate: f64,
}

/// The target with everything that its runs say.
pub(super) fn judged(target: Contender, random: &mut Random) -> Contender {
    let runs = &target.runs;
    let places = places(runs);
    let rates: Vec<f64> = places.iter().map(|place| place.rate).collect();
    let of_runs: Vec<f64> = runs.iter().map(|run| real(run.rate())).collect();
    let groups: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| run.windows.iter().map(|window| real(window.rate())).collect())
        .collect();
    let between_runs = intraclass(&groups);
    let median = |values: Vec<f64>| Sample::new(values).map_or(0, |values| whole(values.median()));
    // Of the median that is shown; windows of a run are alike, runs are what is compared.
    let interval = interval(&of_runs, Sample::median, 0.95, random);
    let guaranteed = runs.iter().map(|run| real(run.guaranteed_bytes_per_s)).collect();
    let (modes, factors) = two_modes(&places, random);
    Contender {
        bytes_per_s: median(of_runs),
        low_bytes_per_s: interval.map_or(0, |interval| whole(interval.low)),
        high_bytes_per_s: interval.map_or(0, |interval| whole(interval.high)),
        guaranteed_bytes_per_s: median(guaranteed),
        between_runs: between_runs.map(|share| whole(share * 1000.0)),
        modes,
        changes: rate_changes(&places, &levelled(&places, &rates)),
        factors,
        ..target
    }
}

/// The windows of all runs, in the order of time.
fn places(runs: &[Run]) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let (mut begin_ns, mut bytes) = (run.begin_ns, bytes_before(runs, at));
        for window in &run.windows {
            places.push(Place { run, at, begin_ns, bytes, rate: real(window.rate()) });
            (begin_ns, bytes) = (begin_ns + window.ns, bytes + window.bytes);
        }
    }
    places
}

/// Rates without what the place does to them: disks with platters are slower farther in. Their
/// profile, which never rises, is known where every place was written more than once; else rates
/// stay as they are, for a change of place and one of time cannot be separated.
fn levelled(places: &[Place<'_>], rates: &[f64]) -> Vec<f64> {
    let mut by_place: BTreeMap<u64, (BTreeSet<usize>, Vec<f64>)> = BTreeMap::new();
    for (place, rate) in places.iter().zip(rates) {
        let (runs, rates) = by_place.entry(place.run.offset).or_default();
        runs.insert(place.at);
        rates.push(*rate);
    }
    let is_known = by_place.len() > 1 && by_place.values().all(|(runs, _)| runs.len() > 1);
    let medians: Vec<f64> = by_place
        .values()
        .filter_map(|(_, rates)| Sample::new(rates.iter().copied()).map(|it| it.median()))
        .collect();
    let profile = falling(&medians);
    let Some(mean) = Sample::new(profile.iter().copied()).map(|it| it.mean()) else {
        return rates.to_vec();
    };
    if !is_known || profile.len() != by_place.len() || profile.iter().any(|rate| *rate <= 0.0) {
        return rates.to_vec();
    }
    let factors: BTreeMap<u64, f64> =
        by_place.into_keys().zip(profile).map(|(offset, rate)| (offset, mean / rate)).collect();
    let factor = |place: &Place<'_>| factors.get(&place.run.offset).copied().unwrap_or(1.0);
    places.iter().zip(rates).map(|(place, rate)| rate * factor(place)).collect()
}

fn rate_changes(places: &[Place<'_>], rates: &[f64]) -> Vec<RateChange> {
    let found = changes(rates).into_iter().filter_map(|change| {
        let place = places.get(change.at)?;
        let before: u64 = place.bytes;
        let of_run = places.iter().find(|other| other.at == place.at)?;
        Some(RateChange {
            begin_ns: place.begin_ns,
            round: place.run.round,
            bytes: before,
            offset: place.run.offset + (before - of_run.bytes),
            before_bytes_per_s: whole(change.before),
            after_bytes_per_s: whole(change.after),
        })
    });
    found.collect()
}

/// Two modes, and what separates them: of whole runs, where there are enough of them and they have
/// two, else of their windows.
fn two_modes(places: &[Place<'_>], random: &mut Random) -> (Option<TwoModes>, Vec<FactorFound>) {
    let runs: Vec<Place<'_>> = places.chunk_by(|a, b| a.at == b.at).filter_map(whole_run).collect();
    for items in [&runs[..], places] {
        let rates: Vec<f64> = items.iter().map(|place| place.rate).collect();
        let Some(found) = modes(&rates).filter(Modes::is_bimodal) else { continue };
        let two = TwoModes {
            lower_bytes_per_s: whole(found.lower.median),
            upper_bytes_per_s: whole(found.upper.median),
            lower_share: count(found.lower.count) * 1000 / count(rates.len()).max(1),
            cut_bytes_per_s: whole(found.cut),
        };
        let is_upper: Vec<bool> = rates.iter().map(|rate| found.is_upper(*rate)).collect();
        return (Some(two), explained(items, &is_upper, random));
    }
    (None, Vec::new())
}

/// A run as a whole: from its beginning, and as fast as its middle window.
fn whole_run<'a>(windows: &[Place<'a>]) -> Option<Place<'a>> {
    let rates = Sample::new(windows.iter().map(|window| window.rate))?;
    Some(Place { rate: rates.median(), ..*windows.first()? })
}

/// What was recorded that separates the modes.
fn explained(items: &[Place<'_>], is_upper: &[bool], random: &mut Random) -> Vec<FactorFound> {
    let found = separations(is_upper, &columns(items), random);
    let told = |found: Separation| FactorFound {
        name: found.name,
        share: whole(found.share * 1000.0),
        chance: whole(found.p * 1e6),
        slower: found.lower.to_string(),
    };
    found.into_iter().map(told).collect()
}

/// Turns, rounds, places, and the facts of the run.
fn columns(items: &[Place<'_>]) -> Vec<Column> {
    type Of = fn(&Place<'_>) -> u64;
    let own: [(&str, Of); 5] = [
        ("turn in the round", |place| u64::from(place.run.turn)),
        ("odd round", |place| u64::from(place.run.round % 2)),
        ("place on the target", |place| place.run.offset),
        ("time since the beginning", |place| place.begin_ns),
        ("time within the run", |place| place.begin_ns - place.run.begin_ns),
    ];
    let column = |(name, of): (&str, Of)| Column {
        name: name.to_owned(),
        cells: items.iter().map(|place| Cell::Number(real(of(place)))).collect(),
    };
    let own = own.into_iter().map(column);
    let facts = items.first().map_or(&[][..], |place| &place.run.facts[..]);
    let facts = facts.iter().enumerate().map(|(at, fact)| {
        let value = |place: &Place<'_>| {
            Cell::read(place.run.facts.get(at).map_or("", |fact| fact.value.as_str()))
        };
        Column { name: fact.name.clone(), cells: items.iter().map(value).collect() }
    });
    own.chain(facts).collect()
}

/// Every other target against the first, round by round.
pub(super) fn effects(targets: &[Contender]) -> Vec<EffectFound> {
    let Some((first, others)) = targets.split_first() else { return Vec::new() };
    let mut effects = Vec::new();
    for (target, at) in others.iter().zip(1..) {
        let pairs = first.runs.iter().zip(&target.runs);
        for measure in [Measure::Rate, Measure::Guaranteed] {
            let of = |run: &Run| match measure {
                Measure::Guaranteed => real(run.guaranteed_bytes_per_s),
                Measure::Rate | Measure::Sweep => real(run.rate()),
            };
            let pairs: Vec<(f64, f64)> = pairs.clone().map(|(a, b)| (of(a), of(b))).collect();
            effects.extend(effect(at, measure, &pairs));
        }
    }
    effects
}

/// `None` where there is nothing to be compared.
pub(super) fn effect(target: u32, measure: Measure, pairs: &[(f64, f64)]) -> Option<EffectFound> {
    let found = paired(pairs)?;
    let permille = |value: f64| whole(value * 1000.0);
    Some(EffectFound {
        target,
        measure,
        ratio: permille(found.ratio),
        low: permille(found.low),
        high: permille(found.high),
        confidence: permille(found.confidence),
        differs: found.differs(),
    })
}

/// Bytes of the runs before.
fn bytes_before(runs: &[Run], at: usize) -> u64 {
    runs.iter().take(at).map(|run| run.bytes).sum()
}

/// How many there are.
fn count(places: usize) -> u64 {
    to_u64(places)
}

#[cfg(test)]
mod tests {
    use super::super::RateWindow;
    use super::*;

    /// Runs over four places of a surface that gets slower inwards, twice; in the second lap at
    /// `later` of the rate.
    fn two_laps(later: f64) -> Contender {
        let mut random = Random::new(3);
        let run = |round: u32| {
            let place = round % 4;
            let rate = (200e6 - 30e6 * f64::from(place)) * if round < 4 { 1.0 } else { later };
            let mut window = || {
                let chance = 0.99 + real(random.below(2000)) / 100_000.0;
                RateWindow { bytes: whole(rate * chance), ns: 1_000_000_000 }
            };
            let windows: Vec<RateWindow> = (0..12).map(|_| window()).collect();
            Run {
                round,
                begin_ns: u64::from(round) * 12_000_000_000,
                offset: u64::from(place) << 30,
                bytes: windows.iter().map(|window| window.bytes).sum(),
                ns: 12_000_000_000,
                windows,
                ..Run::default()
            }
        };
        Contender { runs: (0..8).map(run).collect(), ..Contender::default() }
    }

    #[test]
    fn a_surface_that_gets_slower_inwards_does_not_change_and_one_that_gets_slower_does() {
        let steady = judged(two_laps(1.0), &mut Random::new(1));
        assert_eq!(steady.changes, []);
        let slower = judged(two_laps(0.8), &mut Random::new(1));
        let [change] = &slower.changes[..] else { panic!("{:?}", slower.changes) };
        assert_eq!((change.round, change.begin_ns), (4, 48_000_000_000));
    }
}
