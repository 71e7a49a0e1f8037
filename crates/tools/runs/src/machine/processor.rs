//! What processors compute.

use core::hint::black_box;
use std::thread;

use parity::Codec;
use units::Random;
use units::number::real_usize;

use super::slice::Slice;
use crate::error::Error;

/// Numbers between two looks at the clock.
const NUMBERS: u32 = 1 << 16;
/// Columns of a stripe: the middle of what arrays have.
const DATA_COLUMNS: usize = 6;
/// Of each column at a time: all of them, with P and Q, fit into any second-level cache.
const COLUMN_BYTES: usize = 16 << 10;

/// Work for processors.
#[derive(Debug)]
pub(super) struct Processor {
    codec: Codec,
    count: usize,
    /// For each of them.
    stripes: Vec<Stripe>,
}

#[derive(Debug)]
struct Stripe {
    data: Vec<Vec<u8>>,
    p: Vec<u8>,
    q: Vec<u8>,
}

impl Processor {
    pub(super) fn new(count: usize, random: &mut Random) -> Result<Self, Error> {
        let mut column = || {
            let mut bytes = vec![0; COLUMN_BYTES];
            random.fill(&mut bytes);
            bytes
        };
        let mut stripe = || Stripe {
            data: core::iter::repeat_with(&mut column).take(DATA_COLUMNS).collect(),
            p: vec![0; COLUMN_BYTES],
            q: vec![0; COLUMN_BYTES],
        };
        let count = count.max(1);
        let stripes = core::iter::repeat_with(&mut stripe).take(count).collect();
        Ok(Self { codec: Codec::new()?, count, stripes })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Random numbers a second.
    pub(super) fn integers(&self, slice: Slice<'_>, is_all: bool) -> f64 {
        let work = |seed: usize| {
            let mut random = Random::new(u64::try_from(seed).unwrap_or(0));
            slice.rate(|| {
                for _ in 0..NUMBERS {
                    black_box(random.next());
                }
                f64::from(NUMBERS)
            })
        };
        if !is_all {
            return work(0);
        }
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.count).map(|seed| scope.spawn(move || work(seed))).collect();
            sum(threads)
        })
    }

    /// Bytes of data a second.
    pub(super) fn parity(&mut self, slice: Slice<'_>, is_all: bool) -> f64 {
        let codec = self.codec;
        let work = |stripe: &mut Stripe| slice.rate(|| stripe.protect(codec));
        if !is_all {
            return self.stripes.first_mut().map_or(0.0, work);
        }
        thread::scope(|scope| {
            let threads: Vec<_> =
                self.stripes.iter_mut().map(|stripe| scope.spawn(move || work(stripe))).collect();
            sum(threads)
        })
    }
}

impl Stripe {
    /// Bytes of data.
    fn protect(&mut self, codec: Codec) -> f64 {
        let data: [&[u8]; DATA_COLUMNS] =
            core::array::from_fn(|at| self.data.get(at).map_or(&[][..], Vec::as_slice));
        codec.encode(black_box(&data), Some(&mut self.p), Some(&mut self.q));
        black_box((&self.p, &self.q));
        real_usize(DATA_COLUMNS * COLUMN_BYTES)
    }
}

/// A panic of a thread goes on in ours.
pub(super) fn sum(threads: Vec<thread::ScopedJoinHandle<'_, f64>>) -> f64 {
    let join = |thread: thread::ScopedJoinHandle<'_, f64>| {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    threads.into_iter().map(join).sum()
}
