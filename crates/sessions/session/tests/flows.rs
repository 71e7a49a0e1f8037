//! Long flows of every kind through the table: no counter of what is sent again and again may
//! overflow, no packet may be counted twice or not at all.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;
mod traffic;

use session::Config;
use traffic::{PACKET_COUNT_MAX, PAYLOADS, run};
use units::Random;

/// Steps of programs, as `traffic` reads them.
const PORT: u8 = 1;
const PROTOCOL: u8 = 2;
const PAYLOAD: u8 = 3;
const AGAIN: u8 = 4;
const FLAGS: u8 = 5;

/// Repetitions: 2^16 and a few more are what counters of 16 bits do not hold.
const TIMES_65536: u8 = 16;
const TIMES_64: u8 = 6;

fn small() -> Config {
    Config { session_count_max: 64, head_bytes_max: 1 << 20, ..Config::default() }
}

/// Each payload, over TCP at several ports and over UDP, sent more often than 16 bits can count:
/// after an opening of the other side, by one side or by both in turn.
#[test]
fn no_payload_can_be_sent_so_often_that_a_counter_overflows() {
    for (number, _) in (0..).zip(PAYLOADS) {
        for protocol in [0, 3] {
            let turn = [0, 1, 4][usize::from(number % 3)];
            let program = [
                &[PROTOCOL, protocol, PORT, number % 16, FLAGS, 2][..],
                &[PAYLOAD, 1, number % 4, 0, PAYLOAD, 0, 10, 0],
                &[PAYLOAD, 1, number, 0, AGAIN, turn, TIMES_65536],
                &[AGAIN, 0, TIMES_64],
            ]
            .concat();
            let report = run(&program, PACKET_COUNT_MAX, small(), || {});
            assert!(report.packets > 65_600);
        }
    }
}

fn programs(seed: u64, len: usize) -> Vec<u8> {
    let mut program = vec![0; len];
    Random::new(seed).fill(&mut program);
    program
}

/// `WIRESPOOL_FLOWS` is how many seeds are run, for a longer search.
#[test]
fn programs_of_any_bytes_leave_no_packet_out() {
    let wished = std::env::var("WIRESPOOL_FLOWS").ok();
    let seeds = wished.map_or(120, |count| count.parse().unwrap());
    let [mut evicted, mut crowded, mut refused] = [0; 3];
    for seed in 0..seeds {
        let config = match seed % 4 {
            0 => Config { slice_ns: None, tcp_timeout_ns: None, ..small() },
            1 => Config { session_count_max: 3, piece_bytes_max: 1000, ..small() },
            2 => Config { names_bytes_max: 100_000, head_bytes_max: 2000, ..small() },
            _ => Config::default(),
        };
        let stats = run(&programs(seed, 400), 20_000, config, || {}).stats;
        evicted += stats.evicted;
        crowded += stats.crowded;
        refused += stats.heads_refused + stats.names_refused;
    }
    assert!(evicted.min(crowded).min(refused) > 0, "{evicted} {crowded} {refused}");
}

/// What the fuzz target `session_flows` starts from; the first byte is the target's.
#[test]
fn seeds_of_the_fuzz_target_leave_no_packet_out() {
    for seed in seeds::of("session_flows", 6) {
        for config in [small(), Config { session_count_max: 3, piece_bytes_max: 1000, ..small() }] {
            assert!(run(&seed[1..], PACKET_COUNT_MAX, config, || {}).packets > 100);
        }
    }
}
