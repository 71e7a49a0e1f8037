//! What `Talkers` take of memory stays below what their limits say, by an allocator that counts,
//! although time stands still: no second ends, so nothing is ever old.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "talkers/frames.rs"]
mod frames;

use std::alloc::System;

use frames::{Made, dns, interface, udp};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use talkers::{Limits, Talkers};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// A question of a client of its own for a name of its own, of the longest kind.
fn question(number: u32) -> Made {
    let [_, id, low, last] = number.to_be_bytes();
    let label = "x".repeat(60);
    let name = format!("{number:0>60}.{label}.{label}.{label}");
    let payload = dns(u16::from(id), 0x0100, &name, &[]);
    let mut made = udp(1000, (last, 1024 + u16::from(low)), (53, 53), &payload);
    // Byte 1 of the source's address.
    made.data[27] = id;
    assert_eq!(made.second(), 1);
    made
}

#[test]
fn a_second_without_an_end_takes_no_more_than_its_limits() {
    let limits = Limits { packet_bytes: 2 << 20, lines: 1 << 14, sessions: 2000 };
    let before = allocated();
    let (mut talkers, mut most) = (Talkers::new(limits, 1), 0);
    for first in (0..200_000).step_by(500) {
        let batch: Vec<Made> = (first..first + 500).map(question).collect();
        talkers.take(&[interface()], batch.iter().map(Made::packet));
        drop(batch);
        most = most.max(allocated() - before);
    }
    assert!(most <= limits.memory_bytes_max(), "{most} of {}", limits.memory_bytes_max());
    talkers.end();
    let held = talkers.held();
    assert_eq!(held.packets, 200_000);
    assert!(held.questions_left_out > 100_000 && held.sessions_left_out > 100_000, "{held:?}");
    assert!(held.sessions > 1000, "there is memory for some");
}
