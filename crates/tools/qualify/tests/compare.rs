//! Targets in turn, in virtual time: how much they differ, and why one differs from itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use device::{Completion, Device, Error, Modelled, Shared, Timeline, Timing, ZoneProfile};
use qualify::{
    Ask, Bench, Comparison, Contest, Contestant, Fact, Fill, Lent, Measure, Members, Mix, Part,
    PartResult, Plan, Protection, Qualification, Target, TargetKind, compare, compare_reports, run,
};
use statistics::Draw as _;
use units::{Random, Timestamp};

const SIZE: u64 = 4 << 30;
const CONTEST: Contest = Contest {
    rounds: 24,
    run_bytes: 256 << 20,
    block_bytes: 2 << 20,
    pool_bytes: 8 << 20,
    verifies: false,
};

fn disk(timeline: &Timeline, rate: f64, seed: u64) -> Modelled {
    let whole = Timing::hard_disk(ZoneProfile::level(SIZE, rate));
    let timing = Timing { cache_bytes: 1 << 20, ..whole };
    Modelled::new(SIZE, timing, timeline, seed).forgetting(0..SIZE)
}

/// A disk that is fast or slow, as the test decides.
#[derive(Debug)]
struct Switched {
    fast: Modelled,
    slow: Modelled,
    is_slow: Arc<AtomicBool>,
}

impl Switched {
    fn disk(&mut self) -> &mut Modelled {
        if self.is_slow.load(Ordering::Relaxed) { &mut self.slow } else { &mut self.fast }
    }
}

impl Device for Switched {
    fn size_bytes(&self) -> u64 {
        SIZE
    }

    fn submit_write(&mut self, token: u64, offset: u64, data: Shared, len: usize) {
        self.disk().submit_write(token, offset, data, len);
    }

    fn submit_flush(&mut self, token: u64) {
        self.disk().submit_flush(token);
    }

    fn submit_discard(&mut self, token: u64, offset: u64, len: u64) {
        self.disk().submit_discard(token, offset, len);
    }

    fn submit_read(&mut self, token: u64, offset: u64, len: usize) {
        self.disk().submit_read(token, offset, len);
    }

    fn reap(&mut self, wait: Option<Duration>, out: &mut Vec<Completion>) {
        self.disk().reap(wait, out);
    }

    fn in_flight(&self) -> usize {
        self.fast.in_flight() + self.slow.in_flight()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Device::read_at(&self.fast, offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.disk().write_at(offset, data)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.disk().flush()
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

/// A steady disk against a writer, with what is recorded at the beginning of each run.
fn contest(
    timeline: &Timeline,
    writer: &mut dyn Device,
    facts: &mut dyn FnMut() -> Vec<Fact>,
) -> Comparison {
    let steady = disk(timeline, 200e6, 3);
    let mut steady_writer = steady.clone();
    let mut hears = [|_, _, _| ControlFlow::Continue(()); 2];
    let [first, second] = &mut hears;
    let mut contestants = [
        Contestant {
            name: "steady".to_owned(),
            bench: Bench::new((&steady, Some(&mut steady_writer)), timeline, 1, first),
            columns: 1,
        },
        Contestant {
            name: "other".to_owned(),
            bench: Bench::new((&steady, Some(writer)), timeline, 1, second),
            columns: 1,
        },
    ];
    compare(&mut contestants, &CONTEST, facts, 7).unwrap()
}

#[test]
fn a_disk_with_two_modes_is_found_and_the_factor_named() {
    let timeline = Timeline::new(Timestamp(0));
    let is_slow = Arc::new(AtomicBool::new(false));
    let (fast, slow) = (disk(&timeline, 200e6, 4), disk(&timeline, 170e6, 5));
    let mut switched = Switched { fast, slow, is_slow: Arc::clone(&is_slow) };
    let mut random = Random::new(9);
    let mut facts = || {
        let slow = random.share() < 0.3;
        is_slow.store(slow, Ordering::Relaxed);
        let record = |name: &str, value: String| Fact { name: name.to_owned(), value };
        let limit = if slow { "170 MB" } else { "none" };
        vec![
            record("temperature", (30 + random.below(9)).to_string()),
            record("throttle", limit.to_owned()),
            record("scheduler", "none".to_owned()),
        ]
    };
    let found = contest(&timeline, &mut switched, &mut facts);
    let [steady, other] = &found.targets[..] else { panic!("two targets") };
    assert!(steady.modes.is_none() && steady.changes.is_empty(), "{steady:?}");
    let modes = other.modes.unwrap();
    assert!(modes.lower_bytes_per_s.abs_diff(170_000_000) < 4_000_000, "{modes:?}");
    assert!(modes.upper_bytes_per_s.abs_diff(200_000_000) < 4_000_000, "{modes:?}");
    assert!(other.between_runs.unwrap() > 900, "{:?}", other.between_runs);
    let names: Vec<&str> = other.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!(names, ["throttle"]);
    let factor = &other.factors[0];
    assert_eq!((factor.share, factor.slower.as_str()), (1000, "170 MB"));
}

#[test]
fn a_ratio_has_an_interval_and_equal_disks_do_not_differ() {
    for (rate, ratio, differs) in [(180e6, 900, true), (200e6, 1000, false)] {
        let timeline = Timeline::new(Timestamp(0));
        let mut other = disk(&timeline, rate, 6);
        let found = contest(&timeline, &mut other, &mut Vec::new);
        let of = |measure| found.effects.iter().find(|effect| effect.measure == measure).unwrap();
        for effect in [of(Measure::Rate), of(Measure::Guaranteed)] {
            assert_eq!((effect.target, effect.differs), (1, differs), "{effect:?}");
            assert!(effect.ratio.abs_diff(ratio) <= 15, "{effect:?}");
            assert!(effect.low <= effect.ratio && effect.ratio <= effect.high, "{effect:?}");
            assert!(effect.confidence >= 950, "{effect:?}");
        }
        // Forth and back, each at the same places.
        let turns: Vec<u32> = found.targets[0].runs.iter().map(|run| run.turn).collect();
        assert_eq!(turns[..4], [0, 1, 0, 1]);
        let places = |at: usize| found.targets[at].runs.iter().map(|run| run.offset);
        assert!(places(0).eq(places(1)));
    }
}

#[test]
fn a_change_in_the_course_of_runs_is_told() {
    let timeline = Timeline::new(Timestamp(0));
    let is_slow = Arc::new(AtomicBool::new(false));
    let (fast, slow) = (disk(&timeline, 200e6, 4), disk(&timeline, 150e6, 5));
    let mut switched = Switched { fast, slow, is_slow: Arc::clone(&is_slow) };
    let mut runs = 0;
    let mut facts = || {
        runs += 1;
        is_slow.store(runs > 24, Ordering::Relaxed);
        Vec::new()
    };
    let found = contest(&timeline, &mut switched, &mut facts);
    let [change] = &found.targets[1].changes[..] else { panic!("{:?}", found.targets[1].changes) };
    assert!(change.round.abs_diff(12) <= 1, "{change:?}");
    assert_eq!(change.bytes.abs_diff(12 * CONTEST.run_bytes) / CONTEST.run_bytes, 0, "{change:?}");
    assert!(change.after_bytes_per_s < change.before_bytes_per_s / 5 * 4, "{change:?}");
    // All before were fast, all behind it slow: time explains it, and so does the place.
    let factors = &found.targets[1].factors;
    assert!(factors.iter().any(|factor| factor.name == "time since the beginning"), "{factors:?}");
}

#[test]
fn several_members_are_as_fast_as_their_data_and_the_slowest_of_them() {
    let timeline = Timeline::new(Timestamp(0));
    let disks: Vec<Modelled> =
        (0..4).map(|at| disk(&timeline, if at == 3 { 100e6 } else { 200e6 }, at)).collect();
    let mut writers = disks.clone();
    let lent: Vec<Lent<'_>> = disks
        .iter()
        .zip(&mut writers)
        .map(|(reader, writer)| Lent::new(reader, Some(writer)))
        .collect();
    let [a, b, c, slow] = &lent[..] else { panic!("four disks") };
    let mut members = [
        (&[a][..], Protection::None),
        (&[a], Protection::Checksums),
        (&[a, b, c], Protection::None),
        (&[a, b, c], Protection::Parity),
        (&[c, b, slow], Protection::Parity),
        (&[a, b, c, slow], Protection::DoubleParity),
    ]
    .map(|(lent, protection)| Members::new(lent, protection, CONTEST.block_bytes).unwrap());
    let mut hears = [|_, _, _| ControlFlow::Continue(()); 6];
    let mut contestants: Vec<Contestant<'_>> = members
        .iter_mut()
        .zip(&mut hears)
        .map(|(one, hear)| {
            let columns = one.data_columns();
            Contestant { name: String::new(), bench: one.bench(&timeline, 1, hear), columns }
        })
        .collect();
    let contest = Contest { rounds: 6, ..CONTEST };
    let found = compare(&mut contestants, &contest, &mut Vec::new, 7).unwrap();
    let rates: Vec<u64> =
        found.targets.iter().map(|target| target.bytes_per_s / 1_000_000).collect();
    for (rate, expected) in rates.iter().zip([200, 200, 600, 400, 200, 200]) {
        assert!(rate.abs_diff(expected) <= expected / 20, "{rates:?}");
    }
    // Runs of all are the same whole stripes of one, two and three columns.
    let bytes = found.targets.iter().flat_map(|target| &target.runs).map(|run| run.bytes);
    assert!(bytes.eq(core::iter::repeat_n(CONTEST.run_bytes / (12 << 20) * (12 << 20), 36)));
}

#[test]
fn an_interrupted_comparison_counts_whole_rounds() {
    let timeline = Timeline::new(Timestamp(0));
    let disks = [disk(&timeline, 200e6, 1), disk(&timeline, 200e6, 2)];
    let mut writers = disks.clone();
    let mut told = 0;
    let mut stopping = |_, done, total| {
        told += u32::from(done == total);
        if told > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut going_on = |_, _, _| ControlFlow::Continue(());
    let [first, second] = &mut writers;
    let mut contestants = [
        Contestant {
            name: "a".to_owned(),
            bench: Bench::new((&disks[0], Some(first)), &timeline, 1, &mut going_on),
            columns: 1,
        },
        Contestant {
            name: "b".to_owned(),
            bench: Bench::new((&disks[1], Some(second)), &timeline, 1, &mut stopping),
            columns: 1,
        },
    ];
    let found = compare(&mut contestants, &CONTEST, &mut Vec::new, 7).unwrap();
    let runs: Vec<usize> = found.targets.iter().map(|target| target.runs.len()).collect();
    assert!(found.is_interrupted && runs[0] == runs[1] && runs[0] <= 4, "{runs:?}");
}

/// A report of a disk whose rate falls to three quarters.
fn report(rate: f64) -> (String, Qualification) {
    let timeline = Timeline::new(Timestamp(0));
    let whole = Timing::hard_disk(ZoneProfile::level(SIZE, rate));
    let disk = Modelled::new(SIZE, whole, &timeline, 1).forgetting(0..SIZE);
    let mut writer = disk.clone();
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
    let path = format!("{rate}");
    let kind = TargetKind::Model;
    let target = Target {
        kind,
        path: path.clone(),
        size_bytes: SIZE,
        layers: Vec::new(),
        is_in_memory: false,
        limits: Vec::new(),
    };
    let plan = Plan::of_model(SIZE).only(&[Part::Fill]);
    let ask =
        Ask { pool_bytes: 1 << 20, mix: Mix::named("640").unwrap(), bits_per_s: None, array: None };
    let mut found = run(bench, target, &plan, &ask).unwrap();
    // A file keeps windows and no completions.
    for part in &mut found.parts {
        if let PartResult::Fill(fill) = part {
            *fill = Fill { trace: qualify::Trace::default(), ..fill.clone() };
        }
    }
    (path, found)
}

#[test]
fn reports_are_compared_place_by_place() {
    let found = compare_reports(&[report(200e6), report(190e6)]);
    let [effect] = &found.effects[..] else { panic!("{:?}", found.effects) };
    assert!(effect.differs && effect.ratio.abs_diff(950) <= 5, "{effect:?}");
    let same = compare_reports(&[report(200e6), report(200e6)]);
    assert!(!same.effects[0].differs && same.effects[0].ratio == 1000, "{:?}", same.effects);
    assert_eq!(found.targets.len(), 2);
    assert!(found.targets[0].bytes_per_s > found.targets[1].bytes_per_s);
}
