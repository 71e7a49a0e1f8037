use ::qualify::{
    Answer, Asked, Cause, CurvePoint, ExtentStep, Extents, Fill, Judged, Latencies, Latency, Layer,
    Mix, Order, Part, PartResult, Passes, Qualification, Reads, SlowWrite, Sweep, SweepStep,
    Target, TargetKind, Trace, Verdict, Verified, Window,
};
use units::Timestamp;

use super::{parse_qualification, qualification, qualification_json};
use crate::plot::PlotStyle;

fn latencies(values: impl Iterator<Item = u64>) -> Latencies {
    let mut latencies = Latencies::default();
    values.for_each(|value| latencies.add(value));
    latencies
}

fn fill() -> Fill {
    let window = |at: u64| Window {
        end_ns: (at + 1) * 1_000_000_000 + at * at * 100_000_000,
        bytes: 200_000_000,
        offset_low: at * 200_000_000,
        offset_high: (at + 1) * 200_000_000,
        latency_ns_max: 20_000_000 + at,
    };
    Fill {
        block_bytes: 2 << 20,
        depth: 8,
        windows: (0..8).map(window).collect(),
        curve: vec![CurvePoint { pool_bytes: 16 << 20, bytes_per_s: 90_000_000 }],
        verified: Some(Verified { rows: 64, wrong: 0 }),
        trace: Trace::default(),
    }
}

fn judged() -> Judged {
    Judged {
        basis: Part::Fill,
        order: Order::FirstToLast,
        is_computed: false,
        is_by_reading: false,
        pool_bytes: 80 << 20,
        guaranteed_bytes_per_s: 95_000_000,
        mean_bytes_per_s: 140_000_000,
        minimum_bytes_per_s: 83_000_000,
        slow_ns: Some(6_000_000_000),
        fast_ns: Some(5_000_000_000),
    }
}

fn target() -> Target {
    let layer = Layer {
        name: "sdb".to_owned(),
        size_bytes: 8_000_000_000_000,
        model: Some("EXAMPLE 8000".to_owned()),
        serial: Some("ZA1\u{1b}[2J".to_owned()),
        is_rotational: true,
        ..Layer::default()
    };
    Target {
        kind: TargetKind::Device,
        path: "/dev/sdb".to_owned(),
        size_bytes: 8_000_000_000_000,
        layers: vec![layer],
    }
}

fn every_part() -> Qualification {
    let step =
        |at: u64| SweepStep { offset: at << 30, bytes: 1 << 30, ns: (4 + at) * 1_000_000_000 };
    let parts = vec![
        PartResult::Sweep(Sweep {
            is_write: true,
            block_bytes: 2 << 20,
            steps: (0..5).map(step).collect(),
        }),
        PartResult::Fill(fill()),
        PartResult::Passes(Passes {
            first: fill(),
            second: fill(),
            cause: Cause::Place,
            by_place: 990,
            by_amount: -400,
            second_to_first: 1010,
        }),
        PartResult::Ring(fill()),
        PartResult::Extents(Extents {
            steps: vec![ExtentStep { extent_bytes: 1 << 20, extents: 8, ns: 100_000_000 }],
            jump_ns: 9_000_000,
            bytes_per_s: 200_000_000,
            knee_bytes: Some(16 << 20),
        }),
        PartResult::Latency(Latency {
            offered_bytes_per_s: 80_000_000,
            ns: 10_000_000_000,
            block_bytes: 2 << 20,
            from_arrival: latencies((1..=2000).map(|value| value * 10_000)),
            of_device: latencies((1..=2000).map(|value| value * 5_000)),
            backlog_bytes_max: 6 << 20,
            slowest: vec![SlowWrite { latency_ns: 10_000_000, end_ns: 5, offset: 4096 }],
        }),
        PartResult::Reads(Reads {
            latency: latencies((1..=1000).map(|value| 5_000_000 + value * 10_000)),
            cache_hits: 12,
            hit_ns_max: Some(200_000),
        }),
    ];
    let asked = Asked {
        bits_per_s: 1_000_000_000,
        needed_bytes_per_s: 128_000_000,
        margin_permille: -258,
        answer: Answer::TooSlow,
    };
    let verdict = Verdict {
        judged: vec![judged()],
        pool_bytes: 1 << 30,
        mix: Mix::named("640").unwrap(),
        guaranteed_traffic_bit_per_s: 742_000_000,
        asked: Some(asked),
    };
    Qualification {
        target: target(),
        started: Timestamp(1_795_171_222_000_000_000),
        ns: 60_000_000_000,
        parts,
        verdict: Some(verdict),
        written: vec![0..4096, 8192..16384],
        is_interrupted: false,
        notes: vec!["buffered".to_owned()],
    }
}

/// Numbers of the schema: a file that is read again says the same.
#[test]
fn what_was_written_is_read_again() {
    let found = every_part();
    let text = qualification_json(&found);
    let again = parse_qualification(&text).unwrap();
    assert_eq!(qualification_json(&again), text);
    assert_eq!((again.target, again.verdict), (found.target, found.verdict));
    assert_eq!(again.parts.len(), 7);
}

#[test]
fn scripts_find_the_verdict_at_the_top() {
    let json: serde_json::Value = serde_json::from_str(&qualification_json(&every_part())).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["guaranteed_bytes_per_s"], 95_000_000);
    assert_eq!(json["guaranteed_traffic_bit_per_s"], 742_000_000);
    assert_eq!(json["verdict"]["asked"]["answer"], "too_slow");
    assert_eq!(json["parts"][5]["part"], "latency");
    assert!(json["parts"][5]["from_arrival"]["p99_99_ns"].is_null(), "too few for that");
}

#[test]
fn other_files_and_other_versions_are_refused() {
    let error = |text: &str| parse_qualification(text).unwrap_err().to_string();
    assert!(error("{}").starts_with("not the file of a qualification: missing field `version`"));
    assert!(error("{\"version\": 2}").starts_with("a qualification of version 2; this program"));
    assert!(error("{\"version\": 1}").contains("missing field `target`"));
}

#[test]
fn a_summary_fits_its_terminal_and_cannot_steer_it() {
    let style = PlotStyle { width: 80, is_terminal: false };
    let text = qualification(&every_part(), style);
    for expected in [
        "verdict:       guarantees 742.00 Mbit/s of traffic (640, mean frame 640 bytes)\n",
        "1.00 Gbit/s need 128 MB/s: too slow by 25.8 %\n",
        "first to last (fill): guaranteed 95.0 MB/s, mean 140 MB/s,\n",
        "sweep:         5.00 GiB written at 5 places: 268 MB/s to 134 MB/s\n",
        "               #%*+=\n",
        "the rate follows the place on the surface; the second at 101.0 %\n",
        "a jump takes 9.0 ms, 90 % of 200 MB/s",
        "1.2 % of them from a cache, within 200.0 us\n",
        "12.0 KiB written",
        "serial ZA1\\u{1b}[2J",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    for line in text.lines() {
        assert!(line.len() <= 80, "{line}");
    }
}
