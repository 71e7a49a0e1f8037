//! Work on hostile payload is linear: 16 times the input costs at most 32 times as much.
//!
//! Work is the least time of several runs: what disturbs a run makes it longer, and what is
//! quadratic costs 256 times as much.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "what costs how much is of interest")]
#![expect(clippy::disallowed_methods, reason = "a test measures")]

#[path = "traffic/hostile.rs"]
mod hostile;

use std::time::{Duration, Instant};

use hostile::{HOSTILE, frame, segments, view};
use session::{Config, Table};

/// A difference of clocks and caches, not of work.
const LEAST: Duration = Duration::from_micros(4);

/// The least time that it takes a table to take the frames, after one that makes the session known.
fn cost(frames: &[Vec<u8>], repetitions: u32) -> Duration {
    let run = || {
        let config = Config { session_count_max: 300_000, ..Config::default() };
        let (mut table, mut rows) = (Table::new(config, 1), Vec::new());
        let start = Instant::now();
        for (number, data) in (0..).zip(frames) {
            table.push(&view(data, number), &mut rows);
        }
        let cost = start.elapsed();
        table.finish(&mut rows);
        cost
    };
    (0..repetitions).map(|_| run()).min().unwrap().max(LEAST)
}

/// Asserts that work grows no faster than twice as fast as the input; a disturbed measurement is
/// taken again.
fn check(name: &str, of: impl Fn(usize) -> Vec<Vec<u8>>, lens: [usize; 2]) {
    let [few, many] = lens.map(of);
    let mut costs = Vec::new();
    for repetitions in [5, 20, 100] {
        let (one, sixteen) = (cost(&few, repetitions), cost(&many, repetitions));
        costs.push((one, sixteen));
        if sixteen <= one * 32 {
            println!("{name}: {one:?}, of 16 times as much {sixteen:?}");
            return;
        }
    }
    panic!("{name}: 16 times the input costs more than 32 times as much: {costs:?}");
}

#[test]
fn work_on_one_payload_is_linear() {
    for hostile in HOSTILE {
        check(hostile.name, |len| segments(hostile, len, 65_000, false), [1 << 10, 1 << 14]);
    }
}

#[test]
fn work_on_a_message_in_many_segments_is_linear() {
    for hostile in HOSTILE.iter().filter(|hostile| hostile.proto == 6) {
        for is_reversed in [false, true] {
            for size in [16, 200] {
                let of = |len| segments(hostile, len, size, is_reversed);
                check(hostile.name, of, [4 * size, 64 * size]);
            }
        }
    }
}

#[test]
fn work_on_many_sessions_is_linear() {
    for hostile in [&HOSTILE[0], &HOSTILE[11]] {
        let of = |count: usize| -> Vec<Vec<u8>> {
            (0..u32::try_from(count).unwrap()).map(|host| frame(hostile, host, 1, b"a")).collect()
        };
        check("sessions", of, [16_000, 256_000]);
    }
}
