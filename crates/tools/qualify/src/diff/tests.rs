use units::{Random, Timestamp};

use super::*;
use crate::judged::Verdict;
use crate::plan::ReadLoad;
use crate::report::{CpuStep, FileLap, IopsStep, Reads, Target, TargetKind, Window};
use crate::traffic::Mix;

fn judged(guaranteed_bytes_per_s: u64) -> Judged {
    Judged {
        basis: Part::Fill,
        order: Order::FirstToLast,
        is_computed: false,
        is_by_reading: false,
        pool_bytes: 1 << 30,
        guaranteed_bytes_per_s,
        mean_bytes_per_s: 200_000_000,
        minimum_bytes_per_s: 100_000_000,
        slow_ns: None,
        fast_ns: None,
        jump: None,
    }
}

fn found(guaranteed: u64, parts: Vec<PartResult>) -> Qualification {
    let mix = Mix::named("640").unwrap();
    let verdict = Verdict {
        judged: vec![judged(guaranteed)],
        pool_bytes: 1 << 30,
        guaranteed_traffic_bit_per_s: mix.bits_of(guaranteed),
        mix,
        with_readers: None,
        asked: None,
        shares: Vec::new(),
        lost: Vec::new(),
        doubts: Vec::new(),
    };
    let (kind, path) = (TargetKind::Model, "x".to_owned());
    Qualification {
        target: Target {
            kind,
            path,
            size_bytes: 1 << 40,
            layers: Vec::new(),
            is_in_memory: false,
            limits: Vec::new(),
        },
        started: Timestamp(0),
        ns: 0,
        parts,
        verdict: Some(verdict),
        written: Vec::new(),
        written_bytes: None,
        meanwhile: None,
        is_interrupted: false,
        unfinished: None,
        notes: Vec::new(),
    }
}

/// A fill of 512 windows over zones from 200 to 100 MB/s, each off by chance, all by `factor`.
fn fill(random: &mut Random, noise: f64, factor: f64) -> PartResult {
    let (mut end_ns, bytes) = (0, 100_000_000);
    let mut window = |at: u64| {
        let chance = 1.0 + noise * (real(random.below(2001)) / 1000.0 - 1.0);
        let rate = (200e6 - 100e6 * real(at) / 512.0) * chance * factor;
        end_ns += whole(real(bytes) * 1e9 / rate);
        Window {
            end_ns,
            bytes,
            offset_low: at * bytes,
            offset_high: (at + 1) * bytes,
            latency_ns_max: 1,
        }
    };
    let windows = (0..512).map(&mut window).collect();
    PartResult::Fill(Fill { windows, ..Fill::default() })
}

fn change(diff: &Diff, subject: Subject) -> Change {
    diff.compared.iter().find(|compared| compared.subject == subject).unwrap().change
}

#[test]
fn a_guarantee_falls_when_it_is_less_by_more_than_the_tolerance() {
    let diff = |old, new| Diff::of(&found(old, Vec::new()), &found(new, Vec::new()), 50);
    assert_eq!(diff(100_000_000, 96_000_000).has_fallen(), Some(false));
    assert_eq!(diff(100_000_000, 94_000_000).has_fallen(), Some(true));
    let risen = diff(100_000_000, 106_000_000);
    assert_eq!(risen.has_fallen(), Some(false));
    assert_eq!(change(&risen, Subject::Guaranteed(Part::Fill, Order::FirstToLast)), Change::Better);
    let mut other = found(50, Vec::new());
    other.verdict.as_mut().unwrap().judged[0].pool_bytes = 7;
    let diff = Diff::of(&found(100, Vec::new()), &other, 50);
    assert_eq!((diff.has_fallen(), diff.unmatched.len()), (None, 1), "other pools");
}

#[test]
fn what_is_alike_but_for_chance_has_not_changed_and_a_little_less_everywhere_has() {
    let mut random = Random::new(7);
    let subject = Subject::ByPlace(Part::Fill);
    let mut alarms = 0;
    for _ in 0..200 {
        let mut run = |factor| found(1, vec![fill(&mut random, 0.10, factor)]);
        let diff = Diff::of(&run(1.0), &run(1.0), 50);
        alarms += u32::from(change(&diff, subject) != Change::Same);
        let diff = Diff::of(&run(1.0), &run(0.96), 50);
        assert_eq!(change(&diff, subject), Change::Worse, "{:?}", diff.compared.last());
        let diff = Diff::of(&run(1.0), &run(1.04), 50);
        assert_eq!(change(&diff, subject), Change::Better);
    }
    assert!(alarms <= 6, "{alarms} of 200");
}

/// A run over a disk in bursts, as behind a cache: what is fast or slow stays so for a while, and
/// the whole run is off by up to 2 %.
fn bursts(random: &mut Random, factor: f64) -> Qualification {
    let mut unit = || real(random.below(2001)) / 1000.0 - 1.0;
    let factor = factor * (1.0 + 0.02 * unit());
    let (mut end_ns, mut state, bytes) = (0, 0.0, 100_000_000);
    let mut windows = Vec::new();
    for at in 0..512 {
        state = 0.8 * state + 0.5 * unit();
        end_ns += whole(real(bytes) * 1e9 / (200e6 * factor * f64::exp(state)));
        let (offset_low, offset_high) = (at * bytes, (at + 1) * bytes);
        windows.push(Window { end_ns, bytes, offset_low, offset_high, latency_ns_max: 1 });
    }
    let fill = Fill { windows, ..Fill::default() };
    let slowest = fill.rates().min().unwrap();
    let mut found = found(fill.rate(), Vec::new());
    let judged = found.verdict.as_mut().unwrap().judged.first_mut().unwrap();
    (judged.mean_bytes_per_s, judged.minimum_bytes_per_s) = (fill.rate(), slowest);
    found.parts.push(PartResult::Fill(fill));
    found
}

#[test]
fn runs_in_bursts_differ_by_chance_in_five_of_a_hundred_pairs_at_most_whatever_is_looked_at() {
    let mut random = Random::new(11);
    let (mut alarms, mut compared, mut missed) = (0, 0, 0);
    for _ in 0..200 {
        let [old, new] = [(); 2].map(|()| bursts(&mut random, 1.0));
        let diff = Diff::of(&old, &new, 50);
        assert_eq!(diff.compared.len(), 4);
        alarms += u32::from(diff.compared.iter().any(|it| it.change != Change::Same));
        let reports = [old, new].map(|report| (String::new(), report));
        let effects = crate::compare_reports(&reports).effects;
        compared += u32::from(effects.iter().any(|effect| effect.differs));
        let half = Diff::of(&bursts(&mut random, 1.0), &bursts(&mut random, 0.5), 50);
        missed += u32::from(half.has_fallen() != Some(true));
    }
    assert!(alarms <= 10 && compared <= 10, "{alarms} and {compared} of 200");
    assert!(missed <= 2, "{missed} of 200 that fell to half");
}

#[test]
fn what_took_a_moment_says_less() {
    for (ns, expected) in [(10_000_000_000, 1000), (100_000_000, 10_000), (0, 100_000_000)] {
        assert_eq!(whole(shift([20_000_000_000, ns]) * 1000.0), expected);
    }
}

#[test]
fn percentiles_change_when_their_ranges_are_apart() {
    let reads = |factor: u64, count: u64| {
        let mut latency = Latencies::default();
        (1..=count).for_each(|value| latency.add(value * 1_000_000 / count * factor));
        found(1, vec![PartResult::Reads(Reads { latency, ..Reads::default() })])
    };
    let subject = Subject::ReadLatency(500_000);
    let diff = Diff::of(&reads(100, 10_000), &reads(105, 10_000), 50);
    assert_eq!(change(&diff, subject), Change::Same, "within the tolerance");
    let diff = Diff::of(&reads(100, 10_000), &reads(130, 10_000), 50);
    assert_eq!(change(&diff, subject), Change::Worse);
    let diff = Diff::of(&reads(100, 40), &reads(125, 40), 50);
    assert_eq!(change(&diff, subject), Change::Same, "too few to say");
}

#[test]
fn other_targets_and_parts_are_told() {
    let mut random = Random::new(1);
    let (old, mut new) = (found(1, vec![fill(&mut random, 0.0, 1.0)]), found(1, Vec::new()));
    new.target.size_bytes = 5;
    let diff = Diff::of(&old, &new, 50);
    assert_eq!(diff.facts, [("bytes", (1_u64 << 40).to_string(), "5".to_owned())]);
    assert_eq!(diff.unmatched, ["fill is only in the old one"]);
}

#[test]
fn readers_random_writes_files_and_processor_are_compared_when_they_are_alike() {
    let parts = |factor: u64| {
        let mut latency = Latencies::default();
        (0..100).for_each(|_| latency.add(1000));
        let iops = IopsStep { depth: 8, ns: 1_000_000_000 * factor, latency, eighths: Vec::new() };
        let lap = FileLap { bytes: 1 << 30, ns: 1_000_000_000 * factor, ..FileLap::default() };
        let step = CpuStep {
            data_columns: 6,
            parity_columns: 2,
            bytes: 1 << 30,
            cpu_ns: 100_000_000 * factor,
        };
        let beside_bytes_per_s = 100_000_000 / factor;
        let mixed = Mixed { beside_bytes_per_s, ..Mixed::default() };
        found(
            1,
            vec![
                PartResult::Mixed(Box::new(mixed)),
                PartResult::Iops(Iops { steps: vec![iops] }),
                PartResult::Files(Files { laps: vec![lap], ..Files::default() }),
                PartResult::Cpu(Cpu { steps: vec![step] }),
            ],
        )
    };
    let subjects = [Subject::BesideReaders, Subject::Iops(8), Subject::LastLap, Subject::Cpu(2)];
    let (same, worse) = (Diff::of(&parts(1), &parts(1), 50), Diff::of(&parts(1), &parts(2), 50));
    for subject in subjects {
        assert_eq!(
            (change(&same, subject), change(&worse, subject)),
            (Change::Same, Change::Worse)
        );
    }
    let mut other = parts(1);
    if let PartResult::Mixed(mixed) = &mut other.parts[0] {
        mixed.load = ReadLoad { streams: 9, ..mixed.load };
    }
    if let PartResult::Files(files) = &mut other.parts[2] {
        files.laps.clear();
    }
    let diff = Diff::of(&parts(1), &other, 50);
    assert_eq!(diff.unmatched.len(), 2, "{:?}", diff.unmatched);
}

/// Random writes whose rate wanders, slower or faster for a while, beyond each run, too.
fn wandering(random: &mut Random, state: &mut f64, (spread, factor): (f64, f64)) -> Qualification {
    let mut unit = || real(random.below(2001)) / 1000.0 - 1.0;
    let mut latency = Latencies::default();
    let eighths: Vec<u64> = (0..8)
        .map(|_| {
            *state = 0.9 * *state + spread * unit();
            whole(2000.0 * factor * f64::exp(*state))
        })
        .collect();
    (0..eighths.iter().sum::<u64>()).for_each(|_| latency.add(100_000));
    // Others run between two runs.
    (0..8).for_each(|_| *state = 0.9 * *state + spread * unit());
    let step = IopsStep { depth: 8, ns: 5_000_000_000, latency, eighths };
    found(1, vec![PartResult::Iops(Iops { steps: vec![step] })])
}

#[test]
fn random_writes_that_drift_differ_in_five_of_a_hundred_pairs_at_most_and_a_fifth_less_is_found() {
    let mut random = Random::new(5);
    let subject = Subject::Iops(8);
    let (mut alarms, mut missed) = (0, 0);
    for _ in 0..200 {
        let mut state = 0.0;
        let [old, new] = [(); 2].map(|()| wandering(&mut random, &mut state, (0.15, 1.0)));
        alarms += u32::from(change(&Diff::of(&old, &new, 50), subject) != Change::Same);
        let mut state = 0.0;
        let [old, new] =
            [1.0, 0.8].map(|factor| wandering(&mut random, &mut state, (0.01, factor)));
        missed += u32::from(change(&Diff::of(&old, &new, 50), subject) != Change::Worse);
    }
    assert!(alarms <= 10, "{alarms} of 200 that drift");
    assert!(missed <= 10, "{missed} of 200 that are a fifth less");
}

#[test]
fn what_others_had_a_part_in_says_nothing_of_a_difference() {
    let second = 1_000_000_000;
    let quiet = Meanwhile {
        ns: 20 * second,
        processors: 2,
        waited_ns: Some(second / 10),
        own_bytes: 8 << 30,
        others_bytes: Some(8 << 20),
        ..Meanwhile::default()
    };
    let with =
        |rate, meanwhile| Qualification { meanwhile: Some(meanwhile), ..found(rate, Vec::new()) };
    let diff = |meanwhile| Diff::of(&with(100_000_000, quiet), &with(50_000_000, meanwhile), 50);
    assert_eq!(diff(quiet).has_fallen(), Some(true));
    let busy = Meanwhile { others_ns: 30 * second, waited_ns: Some(6 * second), ..quiet };
    let stolen = Meanwhile { stolen_ns: 2 * second, ..quiet };
    let disk = Meanwhile { others_bytes: Some(1 << 30), ..quiet };
    for meanwhile in [busy, stolen, disk] {
        let diff = diff(meanwhile);
        assert_eq!(diff.has_fallen(), None, "{meanwhile:?}");
        assert_eq!((diff.disturbed[0].len(), diff.disturbed[1].len()), (0, 1));
        let of = change(&diff, Subject::Guaranteed(Part::Fill, Order::FirstToLast));
        assert_eq!(of, Change::Unclear);
    }
    // Where nothing counts who waited: others that left the half of it idle did not disturb.
    let unknown = Meanwhile { others_ns: 20 * second, waited_ns: None, ..quiet };
    assert_eq!(unknown.disturbances(), []);
}
