//! Every part on modelled disks in virtual time, against what was published of the real ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::ops::ControlFlow;
use core::time::Duration;
use std::path::Path;

use device::{Modelled, Timeline, Timing, ZoneProfile};
use qualify::{
    Answer, Ask, Bench, Cause, JumpBy, Mix, Order, Part, PartResult, Plan, Qualification,
    SweepPlan, Target, TargetKind, modelled, run,
};
use units::Timestamp;

const SINGLE: &str = include_str!("../profiles/single-8tb.csv");
const ARRAY: &str = include_str!("../profiles/raid6-10x4tb.csv");
const ARRAY_BYTES: u64 = 32_001_801_322_496;

fn ask(pool_bytes: u64, bits_per_s: Option<u64>) -> Ask {
    Ask { pool_bytes, mix: Mix::named("640").unwrap(), bits_per_s, array: None }
}

fn qualify(disk: (&Modelled, &Timeline, Target), plan: &Plan, ask: &Ask) -> Qualification {
    let (disk, timeline, target) = disk;
    let mut writer = disk.clone();
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((disk, Some(&mut writer)), timeline, 1, &mut tell);
    run(bench, target, plan, ask).unwrap()
}

/// Points of a profile: offset, and bytes a second.
fn points(csv: &str, rate: impl Fn(f64) -> f64) -> Vec<(u64, f64)> {
    let lines = csv.lines().filter_map(|line| {
        let (offset, value) = line.split_once(',')?;
        Some((offset.parse().ok()?, rate(value.parse().ok()?)))
    });
    lines.collect()
}

#[test]
fn the_probe_finds_the_published_seconds_of_the_array() {
    let (disk, timeline, target) =
        modelled(Path::new("x"), ARRAY, (Some(ARRAY_BYTES), 1), Timestamp(0)).unwrap();
    let plan = Plan::of_model(ARRAY_BYTES).only(&[Part::Sweep]);
    let found = qualify((&disk, &timeline, target), &plan, &ask(1 << 30, None));
    let PartResult::Sweep(sweep) = &found.parts[0] else { panic!("one part was asked for") };
    let published = points(ARRAY, |seconds| 20_971_520_000.0 / seconds);
    assert_eq!(sweep.steps.len(), published.len());
    for (step, (offset, rate)) in sweep.steps.iter().zip(published) {
        assert!(step.offset.abs_diff(offset) < 1 << 20, "{} {offset}", step.offset);
        let error = u32::try_from(step.rate() / 1000).map(f64::from).unwrap() * 1000.0 / rate - 1.0;
        assert!(error.abs() < 0.01, "{offset}: {error}");
    }
}

#[test]
fn the_probe_finds_the_published_rates_of_the_single_disk() {
    let (disk, timeline, target) =
        modelled(Path::new("x"), SINGLE, (None, 1), Timestamp(0)).unwrap();
    assert_eq!(target.size_bytes, 8_000_000_000_000 / 4096 * 4096);
    // Every 0.1 TB, and 2 097 152 000 bytes as published.
    let sweep = SweepPlan { blocks: 1000, steps: 80, ..SweepPlan::of_probe() };
    let plan = Plan { sweep, ..Plan::of_model(target.size_bytes).only(&[Part::Sweep]) };
    let found = qualify((&disk, &timeline, target), &plan, &ask(1 << 30, None));
    let PartResult::Sweep(sweep) = &found.parts[0] else { panic!("one part was asked for") };
    for (offset, rate) in points(SINGLE, |mb_per_s| mb_per_s * 1e6) {
        let step = sweep.steps.iter().find(|step| step.offset.abs_diff(offset) < 1 << 20).unwrap();
        let error = u32::try_from(step.rate() / 1000).map(f64::from).unwrap() * 1000.0 / rate - 1.0;
        assert!(error.abs() < 0.01, "{offset}: {error}");
    }
    assert!(found.written.len() <= 64, "{:?}", found.written.len());
}

/// What `zone_levelling.py` computes, and docs/benchmarks.md has from the recorder's own engine.
#[test]
fn a_levelled_ring_guarantees_what_a_straight_one_does_not() {
    let (disk, timeline, target) =
        modelled(Path::new("x"), SINGLE, (None, 1), Timestamp(0)).unwrap();
    let plan = Plan::of_model(target.size_bytes).only(&[Part::Sweep, Part::Fill, Part::Ring]);
    let ask = ask(1 << 30, Some(1_500_000_000));
    let found = qualify((&disk, &timeline, target), &plan, &ask).verdict.unwrap();
    let expected = [
        (Part::Ring, Order::ZoneLevelled, 202_600_000),
        (Part::Fill, Order::FirstToLast, 133_400_000),
        (Part::Sweep, Order::ZoneLevelled, 202_600_000),
        (Part::Sweep, Order::FirstToLast, 133_400_000),
    ];
    assert_eq!(found.judged.len(), expected.len());
    for (judged, (basis, order, rate)) in found.judged.iter().zip(expected) {
        assert_eq!((judged.basis, judged.order), (basis, order));
        let is_near = judged.guaranteed_bytes_per_s.abs_diff(rate) < rate / 50;
        assert!(is_near, "{judged:?}");
        assert!(judged.guaranteed_bytes_per_s <= judged.mean_bytes_per_s);
    }
    let asked = found.asked.unwrap();
    assert_eq!((asked.answer, asked.margin_permille.is_positive()), (Answer::Fits, true));
}

/// The published disk, or the published array, with an arm that is so many times as slow.
fn with_arm(csv: &str, size_bytes: u64, times: u64) -> (Modelled, Timeline, Target) {
    let size_bytes = size_bytes / 4096 * 4096;
    let profile = ZoneProfile::parse(csv, size_bytes).unwrap();
    let (_, _, target) =
        modelled(Path::new("x"), csv, (Some(size_bytes), 1), Timestamp(0)).unwrap();
    let whole = Timing::hard_disk(profile);
    let timing = Timing {
        seek_shortest_ns: whole.seek_shortest_ns * times,
        seek_longest_ns: whole.seek_longest_ns * times,
        revolution_ns: 0,
        cache_bytes_per_s: 4.0 * whole.profile.rate_at(0),
        ..whole
    };
    let timeline = Timeline::new(Timestamp(0));
    let disk = Modelled::new(size_bytes, timing, &timeline, 3).forgetting(0..size_bytes);
    (disk, timeline, target)
}

/// The jumps of a ring are shorter than those to random places, so that it is charged a little too
/// much, and never too little.
#[test]
fn the_levelled_order_is_charged_with_the_jumps_of_this_very_disk() {
    let (single, array) = ((SINGLE, 8_000_000_000_000), (ARRAY, ARRAY_BYTES));
    for ((csv, size_bytes), times) in [(single, 1), (single, 8), (array, 8)] {
        let (disk, timeline, target) = with_arm(csv, size_bytes, times);
        let plan = Plan::of_model(target.size_bytes).only(&[Part::Sweep, Part::Ring]);
        let found = qualify((&disk, &timeline, target), &plan, &ask(4 << 30, None));
        let judged = found.verdict.unwrap().judged;
        let of = |basis| {
            let is_it =
                |it: &&qualify::Judged| it.basis == basis && it.order == Order::ZoneLevelled;
            *judged.iter().find(is_it).unwrap()
        };
        let (ring, computed) = (of(Part::Ring), of(Part::Sweep));
        let jump = computed.jump.unwrap();
        // 1 ms, and 15 ms times the mean root of the distance, 8/15 of the surface.
        assert_eq!((jump.by, ring.jump), (JumpBy::Reads, None));
        let is_near = jump.ns.abs_diff(9_300_000 * times) < 1_500_000 * times;
        assert!(is_near, "{times}: {jump:?}");
        let (measured, computed) = (ring.guaranteed_bytes_per_s, computed.guaranteed_bytes_per_s);
        assert!(computed <= measured + measured / 200, "{times}: {measured} {computed}");
        assert!(computed >= measured - measured / 25, "{times}: {measured} {computed}");
    }
}

#[test]
fn jumps_by_writing_count_before_those_by_reading() {
    let (disk, timeline, target) = with_arm(SINGLE, 8_000_000_000_000, 2);
    let plan = Plan::of_model(target.size_bytes).only(&[Part::Sweep, Part::Extents]);
    let found = qualify((&disk, &timeline, target), &plan, &ask(1 << 30, None));
    let judged = found.verdict.unwrap().judged;
    let jumps: Vec<JumpBy> = judged.iter().filter_map(|it| it.jump).map(|it| it.by).collect();
    assert_eq!(jumps, [JumpBy::Extents]);
}

#[test]
fn the_array_of_eight_is_near_ten_gigabit_and_dips_for_hours() {
    // RAID 6 of eight disks: six of data.
    let (disk, timeline, target) =
        modelled(Path::new("x"), SINGLE, (None, 6), Timestamp(0)).unwrap();
    let plan = Plan::of_model(target.size_bytes).only(&[Part::Fill, Part::Ring]);
    let ask = ask(4 << 30, Some(10_000_000_000));
    let found = qualify((&disk, &timeline, target), &plan, &ask).verdict.unwrap();
    assert_eq!(found.asked.unwrap().answer, Answer::TooSlow);
    assert!((1_170_000_000..1_230_000_000).contains(&found.judged[0].guaranteed_bytes_per_s));
    let (slow_ns, fast_ns) = (found.judged[1].slow_ns.unwrap(), found.judged[1].fast_ns.unwrap());
    let hours = |ns: u64| u32::try_from(ns / 1_000_000_000).map(f64::from).unwrap() / 3600.0;
    // At 1.25 GB/s computed as 5.0 h and 6.6 h; 10 Gbit/s of these frames need 1.28.
    assert!((4.8..6.0).contains(&hours(slow_ns)), "{}", hours(slow_ns));
    assert!((5.5..6.8).contains(&hours(fast_ns)), "{}", hours(fast_ns));
}

/// A disk of a few GiB with platters, and nothing forgotten.
fn small(profile: ZoneProfile, cache_bytes: u64) -> (Modelled, Timeline, Target) {
    let size_bytes = profile.capacity_bytes();
    let timeline = Timeline::new(Timestamp(0));
    let whole = Timing::hard_disk(profile);
    let timing = Timing { revolution_ns: 0, cache_bytes, cache_bytes_per_s: 400e6, ..whole };
    let disk = Modelled::new(size_bytes, timing, &timeline, 3).forgetting(0..size_bytes);
    let path = "small".to_owned();
    let target = Target {
        kind: TargetKind::Model,
        path,
        size_bytes,
        layers: Vec::new(),
        is_in_memory: false,
        limits: Vec::new(),
    };
    (disk, timeline, target)
}

fn plan(size_bytes: u64) -> Plan {
    let sweep = SweepPlan { blocks: 16, ..SweepPlan::of_probe() };
    let latency_time = Duration::from_secs(20);
    Plan { sweep, latency_time, reads: 2000, ..Plan::of_model(size_bytes) }
}

#[test]
fn a_stall_changes_the_guarantee_by_what_arrives_meanwhile() {
    let level = || ZoneProfile::level(4 << 30, 200e6);
    let (disk, timeline, target) = small(level(), 1 << 20);
    let plan = plan(4 << 30).only(&[Part::Fill]);
    let pool = 16 << 20;
    let steady = qualify((&disk, &timeline, target), &plan, &ask(pool, None)).verdict.unwrap();
    let (disk, timeline, target) = small(level(), 1 << 20);
    let mut writer = disk.clone();
    let mut has_stalled = false;
    let mut tell = |_, done, total| {
        if done > total / 2 && !has_stalled {
            has_stalled = true;
            disk.stall(300_000_000);
        }
        ControlFlow::Continue(())
    };
    let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
    let stalled = run(bench, target, &plan, &ask(pool, None)).unwrap().verdict.unwrap();
    let rate = |verdict: &qualify::Verdict| verdict.judged[0].guaranteed_bytes_per_s;
    // 200 MB/s are never more than 2 MiB late; 16 MiB fill in 310 ms, write and stall, at 54 MB/s.
    assert!((198_000_000..=200_000_000).contains(&rate(&steady)), "{}", rate(&steady));
    assert!((53_000_000..=55_500_000).contains(&rate(&stalled)), "{}", rate(&stalled));
}

#[test]
fn a_jump_has_its_time_and_the_knee_follows_from_it() {
    let (disk, timeline, target) = small(ZoneProfile::level(16 << 30, 200e6), 64 << 20);
    let plan = plan(16 << 30).only(&[Part::Extents]);
    let found = qualify((&disk, &timeline, target), &plan, &ask(1 << 30, None));
    let PartResult::Extents(extents) = &found.parts[0] else { panic!("one part was asked for") };
    // 1 ms, and 15 ms times the mean root of the distance, 8/15 of the surface.
    assert!((8_000_000..11_000_000).contains(&extents.jump_ns), "{extents:?}");
    assert!(extents.bytes_per_s.abs_diff(200_000_000) < 4_000_000, "{extents:?}");
    let knee = extents.knee_bytes.unwrap();
    assert!((14_000_000..20_000_000).contains(&knee), "{knee}");
    assert!(found.verdict.is_none(), "extents say nothing of a lap");
}

#[test]
fn the_backlog_of_a_constant_rate_is_the_pool_it_needs() {
    let run_at = |stall_ns: u64| {
        let (disk, timeline, target) = small(ZoneProfile::level(4 << 30, 200e6), 1 << 20);
        let plan = Plan { latency_bytes_per_s: Some(100_000_000), ..plan(4 << 30) };
        let plan = plan.only(&[Part::Latency]);
        let mut writer = disk.clone();
        let mut is_due = true;
        let mut tell = |_, done, total| {
            if is_due && done > total / 2 {
                is_due = false;
                disk.stall(stall_ns);
            }
            ControlFlow::Continue(())
        };
        let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
        let found = run(bench, target, &plan, &ask(1 << 30, None)).unwrap();
        let Some(PartResult::Latency(latency)) = found.parts.into_iter().next() else {
            panic!("one part was asked for")
        };
        latency
    };
    let (steady, stalled) = (run_at(0), run_at(500_000_000));
    assert!(steady.backlog_bytes_max <= 4 << 20, "{}", steady.backlog_bytes_max);
    // 0.5 s at 100 MB/s.
    let backlog = stalled.backlog_bytes_max;
    assert!((48_000_000..56_000_000).contains(&backlog), "{backlog}");
    assert!((500_000_000..520_000_000).contains(&stalled.of_device.max_ns()));
    // Those that arrived meanwhile and until the disk caught up waited as well.
    let late = stalled.from_arrival.buckets().filter(|(ns, _)| *ns > 50_000_000);
    assert!(late.map(|(_, count)| count).sum::<u64>() > 30);
    assert_eq!(
        stalled.slowest.first().map(|slow| slow.latency_ns),
        Some(stalled.of_device.max_ns())
    );
}

#[test]
fn two_passes_over_zones_follow_the_place() {
    let csv = "offset_bytes,mb_per_s\n0,200\n4294967296,100\n";
    let profile = ZoneProfile::parse(csv, 4 << 30).unwrap();
    let (disk, timeline, target) = small(profile, 1 << 20);
    let plan = plan(4 << 30).only(&[Part::Passes]);
    let found = qualify((&disk, &timeline, target), &plan, &ask(1 << 20, None));
    let PartResult::Passes(passes) = &found.parts[0] else { panic!("one part was asked for") };
    assert_eq!(passes.cause, Cause::Place, "{} {}", passes.by_place, passes.by_amount);
}

#[test]
fn a_run_that_is_stopped_says_what_it_wrote() {
    let (disk, timeline, target) = small(ZoneProfile::level(4 << 30, 200e6), 1 << 20);
    let mut writer = disk.clone();
    let mut tell = |part, done, total| match part {
        Part::Fill if done > total / 4 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
    let plan = plan(4 << 30).only(&[Part::Fill, Part::Reads]);
    let ask = ask(1 << 20, Some(1_000_000));
    let found = run(bench, target, &plan, &ask).unwrap();
    assert!(found.is_interrupted && found.parts.len() == 1);
    let written = found.written.first().unwrap();
    assert_eq!(found.written.len(), 1);
    assert!(written.start == 0 && (1 << 30..(1 << 30) + (64 << 20)).contains(&written.end));
    assert_eq!(found.verdict.unwrap().asked.unwrap().answer, Answer::CannotJudge);
}

#[test]
fn without_a_writer_nothing_is_written_and_nothing_proven() {
    let (disk, timeline, target) = small(ZoneProfile::level(4 << 30, 200e6), 1 << 20);
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, None), &timeline, 1, &mut tell);
    let found = run(bench, target, &plan(4 << 30), &ask(1 << 20, Some(100_000_000))).unwrap();
    let parts: Vec<Part> = found.parts.iter().map(PartResult::part).collect();
    assert_eq!((parts, disk.work().writes), (vec![Part::Sweep, Part::Reads], 0));
    let verdict = found.verdict.unwrap();
    assert!(verdict.judged.iter().all(|judged| judged.is_by_reading && judged.is_computed));
    assert_eq!(verdict.asked.unwrap().answer, Answer::CannotJudge);
}
