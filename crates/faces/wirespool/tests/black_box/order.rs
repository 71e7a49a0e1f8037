//! Extracts are in the order of time, also where captures that were read in one after the other are
//! of the same time.

#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use serde_json::Value;

use crate::golden::pcap;
use crate::machine::{Volume, run};

const SECOND: u64 = 1_000_000_000;
/// 2026-11-20T10:00:00Z
const BEGIN: u64 = 1_795_168_800 * SECOND;
/// 22 MB of packets in each capture: all of it at a time is more than waits without a look ahead.
const PACKETS: u64 = 30_000;
const FRAME_BYTES: usize = 700;

/// A datagram of one of two hosts.
fn frame(host: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0x02, 0xae];
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, host, 192, 168, 1, 1]);
    frame.extend([0x90, host, 0x1f, 0x90, 0x02, 0x9a, 0, 0]);
    frame.resize(FRAME_BYTES, host);
    frame
}

/// The times of a pcap file with nanoseconds.
fn times(file: &[u8]) -> Vec<u64> {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(number(0), 0xa1b2_3c4d);
    let (mut at, mut times) = (24, Vec::new());
    while at < file.len() {
        times.push(u64::from(number(at)) * SECOND + u64::from(number(at + 4)));
        at += 16 + usize::try_from(number(at + 8)).unwrap();
    }
    times
}

#[test]
fn captures_of_the_same_time_that_are_read_one_after_the_other_come_out_by_time() {
    let volume = Volume::empty();
    std::fs::remove_file(&volume.path).unwrap();
    run(&["create", &volume.path, "--size", "192M", "--piece", "256K", "--sparse"]).done();
    let millisecond = SECOND / 1000;
    for (name, begin) in [("late.pcap", 7 * SECOND + 500_000), ("early.pcap", 0)] {
        let capture = volume.file(name);
        let time = |number: u64| BEGIN + begin + number * millisecond;
        let host = |number: u64| u8::try_from(number % 2).unwrap() + 1;
        let packets = (0..PACKETS).map(|number| (time(number), frame(host(number))));
        std::fs::write(&capture, pcap(packets)).unwrap();
        volume.record(&["--read", &capture]).done();
    }
    let out = volume.file("out.pcap");
    for (query, packets) in [
        ("", 2 * PACKETS),
        ("host 192.168.0.1", PACKETS),
        ("host 192.168.0.2 and after 2026-11-20T10:00:10Z", 20_000 / 2 + 27_000 / 2),
    ] {
        let form = ["--format", "pcap", "--only-range", "--index-dir", &volume.index, "--force"];
        let ran = run(&[&["extract", &volume.path, query, "-w", &out], &form[..]].concat()).done();
        let times = times(&std::fs::read(&out).unwrap());
        assert!(times.is_sorted(), "{query}");
        assert_eq!(u64::try_from(times.len()).unwrap(), packets, "{query}");
        assert!(!ran.err.contains("out of order"), "{ran:?}");
        let manifest = std::fs::read_to_string(format!("{out}.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["completeness"]["out_of_order"], Value::Null, "{manifest:#}");
    }
}

/// As where a clock was wrong when the machine started, and was set.
#[test]
fn a_capture_whose_time_runs_backwards_is_recorded_whole_and_comes_out_by_time() {
    let volume = Volume::empty();
    let capture = volume.file("back.pcap");
    let time = |number: u64| match number {
        0..20 => BEGIN + number * SECOND,
        later => BEGIN - 7200 * SECOND + (later - 20) * SECOND,
    };
    let packets = (0..40).map(|number| (time(number), frame(1)));
    std::fs::write(&capture, pcap(packets)).unwrap();
    volume.record(&["--read", &capture]).done();
    let mut expected: Vec<u64> = (0..40).map(time).collect();
    expected.sort_unstable();
    let out = volume.file("out.pcap");
    for query in ["", "host 192.168.0.1"] {
        let form = ["--format", "pcap", "--index-dir", &volume.index, "--force"];
        run(&[&["extract", &volume.path, query, "-w", &out][..], &form].concat()).done();
        assert_eq!(times(&std::fs::read(&out).unwrap()), expected, "{query}");
    }
    let found = ["find", &volume.path, "", "--json", "--index-dir", &volume.index];
    let found = run(&found).done().out;
    let packets = |line: &str| {
        let session: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| session[key].as_u64().unwrap();
        of("orig_packets") + of("resp_packets")
    };
    assert_eq!(found.lines().map(packets).sum::<u64>(), 40, "{found}");
}
