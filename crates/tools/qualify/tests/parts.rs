//! The parts about readers, random writes, files and the processor, in virtual time.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::BTreeMap;

use device::{Device, Modelled, Timeline, Timing, ZoneProfile};
use qualify::{
    Ask, Bench, Error, Files, Folder, Mix, Part, PartResult, Plan, Qualification, ReadLoad, Target,
    TargetKind, Trace, go_on, run,
};
use units::Timestamp;

const SIZE: u64 = 4 << 30;

fn ask(pool_bytes: u64) -> Ask {
    Ask { pool_bytes, mix: Mix::named("640").unwrap(), bits_per_s: None, array: None }
}

fn target() -> Target {
    let path = "modelled".to_owned();
    Target {
        kind: TargetKind::Model,
        path,
        size_bytes: SIZE,
        layers: Vec::new(),
        is_in_memory: false,
        limits: Vec::new(),
    }
}

/// A disk of 200 MB/s with platters, and a small cache.
fn disk(timeline: &Timeline) -> Modelled {
    let whole = Timing::hard_disk(ZoneProfile::level(SIZE, 200e6));
    let timing =
        Timing { revolution_ns: 0, cache_bytes: 1 << 20, cache_bytes_per_s: 400e6, ..whole };
    Modelled::new(SIZE, timing, timeline, 3).forgetting(0..SIZE)
}

fn measured(plan: &Plan) -> Qualification {
    let timeline = Timeline::new(Timestamp(0));
    let disk = disk(&timeline);
    let mut writer = disk.clone();
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
    run(bench, target(), plan, &ask(16 << 20)).unwrap()
}

fn plan(part: Part) -> Plan {
    let time = Duration::from_secs(4);
    let plan =
        Plan { latency_time: time, iops_time: time, mixed_bytes: 2 << 30, ..Plan::of_model(SIZE) };
    plan.only(&[part])
}

#[test]
fn readers_cost_what_their_jumps_and_bytes_take() {
    let readers = ReadLoad { streams: 2, stream_bytes_per_s: 20_000_000, random_per_s: 10 };
    let found = measured(&Plan { readers, ..plan(Part::Mixed) });
    let Some(PartResult::Mixed(mixed)) = found.parts.first() else { panic!("{found:?}") };
    assert!(mixed.alone_bytes_per_s.abs_diff(200_000_000) < 8_000_000, "{mixed:?}");
    // A second has 19 reads of a MiB and 10 small ones: 29 jumps of about 9 ms and some back to
    // the writer, and 100 ms for the bytes of streams.
    let beside = mixed.beside.rate();
    assert!((60_000_000..120_000_000).contains(&beside), "{beside}");
    assert!(mixed.beside_bytes_per_s <= mixed.beside.rate());
    let streams = mixed.reads.stream_rate();
    assert!((15_000_000..=20_500_000).contains(&streams), "{streams}");
    assert!(mixed.reads.random.count() > 50 && mixed.reads.random.min_ns() > 1_000_000);
    let no_verdict = found.verdict.is_none();
    assert!(no_verdict, "stretches beside readers say nothing of a lap");
}

#[test]
fn the_verdict_says_what_is_left_with_readers() {
    let readers = ReadLoad { streams: 2, stream_bytes_per_s: 20_000_000, random_per_s: 10 };
    let plan = Plan { readers, ..Plan::of_model(SIZE) }.only(&[Part::Fill, Part::Mixed]);
    let verdict = measured(&plan).verdict.unwrap();
    let with_readers = verdict.with_readers.unwrap();
    let first = verdict.judged.first().unwrap().guaranteed_bytes_per_s;
    assert!(with_readers.guaranteed_bytes_per_s < first / 4 * 3, "{with_readers:?}");
    assert!(with_readers.guaranteed_bytes_per_s > first / 5, "{with_readers:?}");
    assert!(with_readers.guaranteed_traffic_bit_per_s < verdict.guaranteed_traffic_bit_per_s);
}

#[test]
fn random_writes_are_as_many_as_jumps_fit_into_a_second() {
    let found = measured(&plan(Part::Iops));
    let Some(PartResult::Iops(iops)) = found.parts.first() else { panic!("{found:?}") };
    let depths: Vec<u32> = iops.steps.iter().map(|step| step.depth).collect();
    assert_eq!(depths, [1, 8, 64, 256]);
    // About 9 ms each: the disk does them in the order in which they come.
    for step in &iops.steps {
        let writes = step.writes_per_s();
        assert!((70..200).contains(&writes), "{}: {writes}", step.depth);
    }
    assert_eq!(found.written.first(), Some(&(0..SIZE)));
}

#[test]
fn a_report_goes_on_where_it_stopped_and_only_on_its_own_target() {
    let timeline = Timeline::new(Timestamp(0));
    let disk = disk(&timeline);
    let plan = Plan::of_model(SIZE).only(&[Part::Fill, Part::Ring, Part::Reads]);
    let plan = Plan { reads: 50, ..plan };
    let mut kept = Vec::new();
    let mut go = |earlier, stop: Option<Part>, target: Target, pool_bytes: u64| {
        let mut writer = disk.clone();
        let mut tell = |part, done, total| match stop {
            Some(stop) if stop == part && done > total / 2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let bench = Bench::new((&disk, Some(&mut writer)), &timeline, 1, &mut tell);
        let mut keep = |found: &Qualification| {
            kept.push((found.parts.len(), found.is_interrupted));
            Ok(())
        };
        go_on(bench, target, (&plan, &ask(pool_bytes)), earlier, &mut keep)
    };
    let stopped = go(None, Some(Part::Ring), target(), 16 << 20).unwrap();
    assert_eq!((stopped.unfinished, stopped.parts.len()), (Some(Part::Ring), 2));
    // What a file keeps of it: no completions.
    let mut file = stopped.clone();
    for part in &mut file.parts {
        if let PartResult::Fill(fill) | PartResult::Ring(fill) = part {
            fill.trace = Trace::default();
        }
    }
    let writes = disk.work().writes;
    let whole = go(Some(file.clone()), None, target(), 16 << 20).unwrap();
    let parts: Vec<Part> = whole.parts.iter().map(PartResult::part).collect();
    assert_eq!((parts, whole.is_interrupted), (plan.parts.clone(), false));
    assert_eq!(disk.work().writes - writes, SIZE / plan.block_bytes, "the ring alone");
    assert!(whole.ns > stopped.ns && whole.started == stopped.started);
    let guaranteed = |found: &Qualification| {
        let judged = &found.verdict.as_ref().unwrap().judged;
        judged.iter().find(|judged| judged.basis == Part::Fill).unwrap().guaranteed_bytes_per_s
    };
    assert_eq!(guaranteed(&whole), guaranteed(&stopped), "the curve has the pool asked for");
    let other = Target { size_bytes: SIZE / 2, ..target() };
    let refused = go(Some(file.clone()), None, other, 16 << 20).unwrap_err();
    assert!(matches!(refused, Error::OtherTarget { what: "size" }), "{refused}");
    let refused = go(Some(file), None, target(), 32 << 20).unwrap_err();
    assert!(matches!(refused, Error::OtherPool { was_bytes: 16_777_216 }), "{refused}");
    assert_eq!(kept, [(1, true), (2, true), (2, true), (3, true)], "a file after each part");
}

/// Files in memory, each on a disk of its own that is slower the more files there were.
#[derive(Debug)]
struct Shelf {
    timeline: Timeline,
    live: RefCell<BTreeMap<String, u64>>,
    made: Cell<u64>,
    bytes_max: Cell<u64>,
}

impl Folder for Shelf {
    fn create(&self, name: &str, size_bytes: u64) -> Result<Box<dyn Device>, Error> {
        self.made.set(self.made.get() + 1);
        self.live.borrow_mut().insert(name.to_owned(), size_bytes);
        let bytes: u64 = self.live.borrow().values().sum();
        self.bytes_max.set(self.bytes_max.get().max(bytes));
        let rate = if self.made.get() <= 32 { 100e6 } else { 50e6 };
        let whole = Timing::hard_disk(ZoneProfile::level(size_bytes, rate));
        let timing = Timing { cache_bytes: 1 << 20, ..whole };
        let disk = Modelled::new(size_bytes, timing, &self.timeline, 1).forgetting(0..size_bytes);
        Ok(Box::new(disk))
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.live.borrow_mut().remove(name).unwrap();
        Ok(())
    }

    fn extents(&self, name: &str) -> Result<Option<u64>, Error> {
        Ok(Some(name.trim_end_matches(".data").parse::<u64>().unwrap() / 10 + 1))
    }
}

fn files(plan: &Plan) -> (Files, Shelf) {
    let timeline = Timeline::new(Timestamp(0));
    let shelf = Shelf {
        timeline: timeline.clone(),
        live: RefCell::default(),
        made: Cell::default(),
        bytes_max: Cell::default(),
    };
    let disk = disk(&timeline);
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, None), &timeline, 1, &mut tell).with_folder(&shelf);
    let found = run(bench, target(), plan, &ask(16 << 20)).unwrap();
    let Some(PartResult::Files(files)) = found.parts.into_iter().next() else { panic!("one part") };
    (files, shelf)
}

#[test]
fn the_oldest_file_goes_and_every_lap_is_told() {
    let plan = Plan { files_bytes: 2 << 30, file_laps: 3, ..plan(Part::Files) };
    let (files, shelf) = files(&plan);
    assert_eq!((files.laps.len(), files.writers), (3, 2));
    assert!(shelf.bytes_max.get() <= (2 << 30) / 10 * 9, "{}", shelf.bytes_max.get());
    assert!(shelf.live.borrow().is_empty(), "the directory is left empty");
    let limit = plan.files_limit_bytes();
    for lap in &files.laps {
        assert!(lap.bytes.abs_diff(limit) <= 64 << 20, "{lap:?}");
        assert!((28..=34).contains(&lap.files), "{lap:?}");
    }
    // 2 files at a time of 100 MB/s each, then of 50.
    assert!(files.laps[0].rate() > files.laps[2].rate() / 3 * 5, "{:?}", files.laps);
    assert!(files.laps[0].extents < files.laps[2].extents);
    assert!(files.laps[2].extents_max >= Some(9), "{:?}", files.laps[2]);
    let bytes: u64 = files.laps.iter().map(|lap| lap.bytes).sum();
    assert!(files.fill.bytes() >= bytes);
}

#[test]
fn a_directory_without_room_is_refused() {
    let plan = Plan { files_bytes: 16 << 20, ..plan(Part::Files) };
    let timeline = Timeline::new(Timestamp(0));
    let disk = disk(&timeline);
    let shelf = Shelf {
        timeline: timeline.clone(),
        live: RefCell::default(),
        made: Cell::default(),
        bytes_max: Cell::default(),
    };
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, None), &timeline, 1, &mut tell).with_folder(&shelf);
    let refused = run(bench, target(), &plan, &ask(1 << 20)).unwrap_err();
    assert!(matches!(refused, Error::TooSmall { part: Part::Files, .. }), "{refused}");
}

#[test]
fn the_processor_is_asked_for_each_parity() {
    let timeline = Timeline::new(Timestamp(0));
    let disk = disk(&timeline);
    let used_ns = Cell::new(0);
    // Every look at the processor finds 10 ms more.
    let processor = || {
        used_ns.set(used_ns.get() + 10_000_000);
        Ok(used_ns.get())
    };
    let plan = Plan { cpu_time: Duration::from_millis(20), ..plan(Part::Cpu) };
    let mut tell = |_, _, _| ControlFlow::Continue(());
    let bench = Bench::new((&disk, None), &timeline, 1, &mut tell).with_processor(&processor);
    let found = run(bench, target(), &plan, &ask(1 << 20)).unwrap();
    let Some(PartResult::Cpu(cpu)) = found.parts.first() else { panic!("{found:?}") };
    let parity: Vec<u32> = cpu.steps.iter().map(|step| step.parity_columns).collect();
    assert_eq!(parity, [0, 1, 2]);
    // Two stripes of 6 bodies in 20 ms.
    let bytes = 2 * 6 * 511 * 4096_u64;
    assert!(cpu.steps.iter().all(|step| (step.bytes, step.cpu_ns) == (bytes, 20_000_000)));
    assert!(cpu.steps[0].ns_per_gb().abs_diff(796_262_000) < 1_000_000, "{cpu:?}");
}
