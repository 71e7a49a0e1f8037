//! What memory gives: bytes copied, and the time of a read that no prefetcher could foresee.

use core::hint::black_box;
use std::thread;

use statistics::Draw as _;
use units::Random;
use units::number::{between, real_usize};

use super::processor::sum;
use super::slice::{Slice, per_second};

/// Words of a cache line: of 64 bytes on all processors that this builds for, or of a part of one.
const LINE_WORDS: usize = 8;
/// Bytes copied between two looks at the clock.
const BLOCK_BYTES: usize = 4 << 20;
/// Reads between two looks at the clock.
const READS: usize = 4096;
/// Less is a cache and no memory.
const BYTES_MIN: u64 = 16 << 20;

/// Memory, and a way through it.
#[derive(Debug)]
pub(super) struct Memory {
    /// Each line names the next; one circle through all of them in no order.
    lines: Vec<[usize; LINE_WORDS]>,
    at: usize,
    /// Copied from and to.
    bytes: [Vec<u8>; 2],
}

impl Memory {
    /// Half of it for reads, half for copies.
    pub(super) fn new(memory_bytes: u64, random: &mut Random) -> Self {
        let half = usize::try_from(memory_bytes.max(BYTES_MIN) / 2).unwrap_or(BLOCK_BYTES * 2);
        let blocks = (half / 2).div_ceil(BLOCK_BYTES);
        Self {
            lines: circle(half / size_of::<[usize; LINE_WORDS]>(), random),
            at: 0,
            // Written, so that it has memory and not one page of zeros again and again.
            bytes: [1, 2].map(|value| vec![value; blocks * BLOCK_BYTES]),
        }
    }

    /// Bytes copied a second by so many threads, each in its own part; as many were read, and
    /// written.
    pub(super) fn copied(&mut self, slice: Slice<'_>, threads: usize) -> f64 {
        let [from, to] = &mut self.bytes;
        let blocks = from.len() / BLOCK_BYTES;
        let share = blocks.div_ceil(threads.clamp(1, blocks)) * BLOCK_BYTES;
        thread::scope(|scope| {
            let parts = from.chunks(share).zip(to.chunks_mut(share));
            let threads: Vec<_> =
                parts.map(|(from, to)| scope.spawn(move || copied(slice, from, to))).collect();
            sum(threads)
        })
    }

    /// Nanoseconds from one read to the next.
    pub(super) fn latency_ns(&mut self, slice: Slice<'_>) -> f64 {
        let begin_ns = slice.now_ns();
        let (mut at, mut reads) = (self.at, 0);
        loop {
            for _ in 0..READS {
                at = self.lines.get(at).map_or(0, |line| line[0]);
            }
            reads += READS;
            let ns = between(begin_ns, slice.now_ns());
            if ns >= slice.ns {
                self.at = black_box(at);
                return 1e9 / per_second(real_usize(reads), ns);
            }
        }
    }
}

fn copied(slice: Slice<'_>, from: &[u8], to: &mut [u8]) -> f64 {
    let mut place = 0;
    slice.rate(|| {
        let range = place..(place + BLOCK_BYTES).min(from.len());
        if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range.clone())) {
            to.copy_from_slice(from);
            black_box(to);
        }
        place = if range.end < from.len() { range.end } else { 0 };
        real_usize(range.len())
    })
}

/// One circle through so many lines (Sattolo 1986).
fn circle(count: usize, random: &mut Random) -> Vec<[usize; LINE_WORDS]> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, random.place(at));
    }
    order.into_iter().map(|next| [next; LINE_WORDS]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_goes_through_every_line_once() {
        let lines = circle(1000, &mut Random::new(3));
        let (mut at, mut steps) = (0, 0);
        loop {
            at = lines[at][0];
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1000);
        let neighbours = lines.iter().zip(1..).filter(|(line, next)| line[0] == *next).count();
        assert!(neighbours < 10, "in no order: {neighbours}");
    }
}
