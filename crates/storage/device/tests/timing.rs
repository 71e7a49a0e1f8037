//! How long a modelled disk takes, against formulas; and that one seed gives one run.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::as_conversions, reason = "times and sizes of tests")]
#![expect(clippy::cast_precision_loss, reason = "times and sizes of tests")]
#![expect(clippy::cast_possible_truncation, reason = "times and sizes of tests")]
#![expect(clippy::cast_sign_loss, reason = "times and sizes of tests")]

use std::time::Duration;

use device::{
    Completion, Device, Fault, MUTATIONS, Modelled, Pool, ROW_SIZE, Rule, Shared, Timeline, Timing,
    ZoneProfile,
};
use units::Timestamp;

const PIECE: usize = 1 << 20;
const CAPACITY: u64 = 4 << 30;

fn profile() -> ZoneProfile {
    ZoneProfile::parse("offset_bytes,mb_per_s\n0,200\n4294967296,100\n", CAPACITY).unwrap()
}

fn disk(timing: Timing) -> (Modelled, Timeline) {
    let timeline = Timeline::new(Timestamp(0));
    (Modelled::new(CAPACITY, timing, &timeline, 1).forgetting(0..CAPACITY), timeline)
}

fn piece() -> Shared {
    Pool::new(1, PIECE).unwrap().take().unwrap().freeze()
}

/// Keeps eight writes going until `count` are done; the completions.
fn stream(disk: &mut Modelled, offsets: impl Iterator<Item = u64>) -> Vec<Completion> {
    let (data, mut done) = (piece(), Vec::new());
    for (token, offset) in (0..).zip(offsets) {
        while disk.in_flight() == 8 {
            disk.reap(Some(Duration::from_secs(1)), &mut done);
        }
        disk.submit_write(token, offset, data.clone(), PIECE);
    }
    while disk.in_flight() > 0 {
        disk.reap(Some(Duration::from_secs(1)), &mut done);
    }
    disk.flush().unwrap();
    done
}

#[test]
fn a_sequential_stream_goes_at_the_rate_of_the_surface() {
    let write_through = Timing { cache_bytes: 0, ..Timing::hard_disk(profile()) };
    for timing in [Timing::hard_disk(profile()), write_through] {
        let (mut disk, timeline) = disk(timing);
        stream(&mut disk, (0..4096).map(|index| index * PIECE as u64));
        // The integral of dx / (200 MB/s - x * 100 MB/s / C) over the disk: C ln 2 / 100 MB/s.
        let expected = CAPACITY as f64 * 2_f64.ln() / 100e6;
        let seconds = timeline.now_ns() as f64 / 1e9;
        assert!((seconds / expected - 1.0).abs() < 0.001, "{seconds} s, expected {expected} s");
        assert!(disk.work().jumps <= 1);
    }
}

#[test]
fn a_jump_costs_the_seek_and_half_a_turn() {
    let timing = Timing { cache_bytes: 0, ..Timing::hard_disk(profile()) };
    let far = CAPACITY - ROW_SIZE as u64;
    let (device, timeline) = disk(timing);
    let count = 2000;
    for index in 0..count {
        let offset = if index % 2 == 0 { far } else { 0 };
        Device::read_at(&device, offset, &mut [0; ROW_SIZE]).unwrap();
    }
    let milliseconds = timeline.now_ns() as f64 / 1e6 / f64::from(count);
    let expected = 16.0 + 8.333 / 2.0 + 0.05 + 4.096 / 150.0;
    assert!((milliseconds / expected - 1.0).abs() < 0.01, "{milliseconds} ms of {expected}");
    assert_eq!(device.work().jumps, count as u64);
}

#[test]
fn a_seek_grows_with_the_root_of_its_way() {
    let timing = Timing { revolution_ns: 0, command_ns: 0, ..Timing::hard_disk(profile()) };
    for (share, expected_ms) in [(0.25, 1.0 + 15.0 * 0.5), (0.01, 1.0 + 15.0 * 0.1)] {
        let (device, timeline) = disk(timing.clone());
        let offset = (CAPACITY as f64 * share) as u64 & !4095;
        Device::read_at(&device, offset, &mut [0; ROW_SIZE]).unwrap();
        let transfer_ms = 4.096 / (200.0 - 100.0 * share);
        let milliseconds = timeline.now_ns() as f64 / 1e6;
        assert!((milliseconds - expected_ms - transfer_ms).abs() < 0.01, "{milliseconds}");
    }
}

#[test]
fn a_write_that_comes_late_waits_for_its_sector_to_come_round() {
    let timing =
        Timing { cache_bytes: 0, revolution_ns: 8_000_000, ..Timing::hard_disk(profile()) };
    let (mut disk, timeline) = disk(timing);
    disk.write_at(0, &piece()).unwrap();
    let first_ns = timeline.now_ns();
    timeline.advance_by(3_000_000);
    disk.write_at(PIECE as u64, &piece()).unwrap();
    let transfer_ns = timeline.now_ns() - first_ns - 8_000_000;
    assert!((transfer_ns - first_ns).abs() < 10_000, "{transfer_ns} {first_ns}");
}

#[test]
fn the_cache_takes_writes_at_its_own_rate_until_it_is_full() {
    let timing = Timing {
        profile: ZoneProfile::level(CAPACITY, 100e6),
        cache_bytes: 64 << 20,
        cache_bytes_per_s: 500e6,
        command_ns: 0,
        ..Timing::hard_disk(profile())
    };
    let (mut disk, timeline) = disk(timing);
    let data = piece();
    for token in 0..160 {
        disk.submit_write(token, token * PIECE as u64, data.clone(), PIECE);
    }
    let mut done = Vec::new();
    let mut done_at = |count: usize| {
        while done.len() < count {
            disk.reap(Some(Duration::from_secs(1)), &mut done);
        }
        timeline.now_ns() as f64 / 1e9
    };
    let mebibytes = |count: f64, rate: f64| count * PIECE as f64 / rate;
    let check = |seconds: f64, expected: f64| {
        assert!((seconds - expected).abs() < 0.02 * expected + 0.012, "{seconds} of {expected}");
    };
    check(done_at(50), mebibytes(50.0, 500e6));
    // Full when what came in exceeds what went out by 64 MiB; from there on the medium sets the
    // pace.
    check(done_at(160), mebibytes(160.0 - 64.0, 100e6));
    disk.flush().unwrap();
    check(timeline.now_ns() as f64 / 1e9, mebibytes(160.0, 100e6));
}

#[test]
fn a_stall_holds_everything_up_and_nothing_more() {
    for by_rule in [false, true] {
        let (mut disk, timeline) = disk(Timing::flash(CAPACITY));
        disk.submit_write(1, 0, piece(), PIECE);
        if by_rule {
            let slow = Fault::Slow { latency_ns: 2_000_000_000 };
            disk.add_rule(Rule::new(slow, MUTATIONS).times(1));
        } else {
            disk.stall(2_000_000_000);
        }
        disk.submit_write(2, PIECE as u64, piece(), PIECE);
        disk.submit_write(3, 2 * PIECE as u64, piece(), PIECE);
        let mut done = Vec::new();
        disk.reap(Some(Duration::from_secs(1)), &mut done);
        assert_eq!(done.len(), usize::from(by_rule), "what a rule strikes does not hold others up");
        while disk.in_flight() > 0 {
            disk.reap(Some(Duration::from_secs(1)), &mut done);
        }
        let latencies: Vec<_> = done.iter().map(|done| done.latency_ns / 1_000_000).collect();
        let first = if by_rule { 0 } else { 2000 };
        assert_eq!(latencies, [first, 2000, 2001]);
        assert!(timeline.now_ns() < 2_003_000_000);
    }
}

#[test]
fn a_wait_moves_the_time_to_the_first_completion_and_no_further() {
    let (mut first, timeline) = disk(Timing::flash(CAPACITY));
    let mut second = Modelled::new(CAPACITY, Timing::hard_disk(profile()), &timeline, 2);
    let mut done = Vec::new();
    first.reap(Some(Duration::from_secs(5)), &mut done);
    assert_eq!(timeline.now_ns(), 0, "nothing in flight, nothing to wait for");
    first.submit_write(1, 0, piece(), PIECE);
    second.submit_write(2, 0, piece(), PIECE);
    first.reap(None, &mut done);
    first.reap(Some(Duration::from_micros(7)), &mut done);
    assert_eq!((done.len(), timeline.now_ns()), (0, 7000));
    assert!(timeline.step());
    first.reap(None, &mut done);
    second.reap(None, &mut done);
    assert_eq!(done.iter().map(|done| done.token).collect::<Vec<_>>(), [1]);
    assert!(timeline.step());
    second.reap(None, &mut done);
    assert_eq!((done.len(), timeline.step()), (2, false));
    assert_eq!(done[1].latency_ns, timeline.now_ns() as u64);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed: u64| {
        let timeline = Timeline::new(Timestamp(0));
        let mut disk = Modelled::new(CAPACITY, Timing::hard_disk(profile()), &timeline, seed);
        for fault in [Fault::Torn, Fault::BitRot, Fault::Error, Fault::Slow { latency_ns: 1 << 30 }]
        {
            disk.add_rule(Rule::new(fault, MUTATIONS).one_in(10));
        }
        let places = (0..60).map(|index: u64| index.wrapping_mul(0x9e37_79b9) % 4096);
        let trace: Vec<_> = stream(&mut disk, places.map(|place| place * PIECE as u64))
            .into_iter()
            .map(|done| (done.token, done.result.is_ok(), done.latency_ns))
            .collect();
        (trace, timeline.now_ns())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_disk_of_48_terabytes_takes_no_memory_for_what_is_computed_or_forgotten() {
    let size = 48_000_000_000_000_u64 / 4096 * 4096;
    let timeline = Timeline::new(Timestamp(0));
    let mut disk = Modelled::new(size, Timing::flash(size), &timeline, 0)
        .with_original(|offset, row| row[..8].copy_from_slice(&offset.to_le_bytes()))
        .forgetting(1 << 40..size);
    let mut row = [0; ROW_SIZE];
    for offset in [0, 4096, 1 << 40, size - 4096] {
        Device::read_at(&disk, offset, &mut row).unwrap();
        assert_eq!(row[..8], offset.to_le_bytes());
        disk.write_at(offset, &[7; ROW_SIZE]).unwrap();
        Device::read_at(&disk, offset, &mut row).unwrap();
        assert_eq!(row[9], if offset < 1 << 40 { 7 } else { 0 }, "{offset}");
    }
}
