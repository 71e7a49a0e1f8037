//! Oracles for any target: work that grows faster than its input, and memory that does.
//!
//! Work is the processor's time of this process, the least of several runs: what disturbs a run
//! makes it longer. Its instructions would be counted exactly, but many machines, virtual ones
//! among them, have no counters that could be asked. What is quadratic costs 256 times as much of
//! 16 times the input, so there is space for what clocks and caches do.

use std::alloc::System;
use std::cell::Cell;
use std::time::Duration;

use host::cpu_time;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How much longer the input is made.
const TIMES: usize = 16;

/// How much more work that may be.
const WORK_TIMES: u32 = 32;

/// Less work is not judged: what is done once would count for too much.
const WORK_LEAST: Duration = Duration::from_micros(100);

/// Bytes that are in use, by all threads.
pub fn bytes_in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Does the work on an input and asserts that it asks for at most so many bytes of memory, and so
/// many more for each byte of the input, all that it asks for added up.
///
/// # Panics
/// It takes more.
pub fn within(input: &[u8], (base, each): (usize, usize), work: impl FnOnce(&[u8])) {
    let region = Region::new(ALLOCATOR);
    work(input);
    let bytes = region.change().bytes_allocated;
    let most = base + each * input.len();
    assert!(bytes <= most, "{bytes} bytes of memory for {} of input, of {most}", input.len());
}

/// What the processor has done for this process, whose one thread runs the target.
fn now() -> Duration {
    cpu_time().expect("the kernel counts it").total()
}

/// The least time that the work takes.
fn cost(runs: u32, work: impl Fn()) -> Duration {
    let run = || {
        let start = now();
        work();
        now() - start
    };
    std::iter::repeat_with(run).take(runs as usize).min().unwrap()
}

thread_local! {
    static INPUTS: Cell<u32> = const { Cell::new(0) };
}

/// Of one input in 64, asserts that 16 of it one after the other, behind a head, take at most 32
/// times the work of one: what is read as a list of packets or messages is a longer one then. What
/// seems to take more is measured again, up to 100 times.
///
/// # Panics
/// It takes more.
pub fn linear(head: &[u8], input: &[u8], work: impl Fn(&[u8])) {
    let number = INPUTS.replace(INPUTS.get().wrapping_add(1));
    if number.is_multiple_of(64) {
        linear_always(head, input, work);
    }
}

/// The same of this input. An input whose end is cut may say something only when more of it
/// follows: so 256 of it must take too much more than 16 do, too.
///
/// # Panics
/// It takes more.
pub fn linear_always(head: &[u8], input: &[u8], work: impl Fn(&[u8])) {
    let copies = |count: usize| [head, &input.repeat(count)].concat();
    let Some(costs) = more_than_linear(&copies(1), &copies(TIMES), &[1, 10, 100], &work) else {
        return;
    };
    let more = more_than_linear(&copies(TIMES), &copies(TIMES * TIMES), &[1, 3], &work);
    if let Some(more) = more {
        let len = input.len();
        panic!(
            "16 times {len} bytes of input take more than 32 times the work: {costs:?}, {more:?}"
        );
    }
}

/// What an input and a longer one cost, where that is too much in each measurement, of so many
/// runs.
fn more_than_linear(
    input: &[u8],
    long: &[u8],
    measurements: &[u32],
    work: impl Fn(&[u8]),
) -> Option<Vec<(Duration, Duration)>> {
    let mut costs = Vec::new();
    for &runs in measurements {
        let sixteen = cost(runs, || work(long));
        if sixteen < WORK_LEAST {
            return None;
        }
        let one = cost(runs, || work(input));
        costs.push((one, sixteen));
        if sixteen <= one.max(WORK_LEAST / WORK_TIMES) * WORK_TIMES {
            return None;
        }
    }
    Some(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(input: &[u8]) -> usize {
        input.iter().map(|one| input.iter().filter(|other| *other == one).count()).sum()
    }

    #[test]
    #[should_panic = "more than 32 times the work"]
    fn quadratic_work_is_found() {
        linear_always(&[], &[1; 40], |input| {
            std::hint::black_box(pairs(input));
        });
    }

    #[test]
    fn linear_work_is_not() {
        linear_always(&[], &[1; 100_000], |input| {
            std::hint::black_box(
                pairs(&input[..100]) + input.iter().filter(|&&byte| byte == 1).count(),
            );
        });
    }

    #[test]
    fn memory_beyond_the_bound_is_found() {
        within(&[0; 10], (1000, 10), |_| {});
        let result = std::panic::catch_unwind(|| {
            within(&[0; 10], (1000, 10), |_| drop(std::hint::black_box(vec![0_u8; 1 << 20])));
        });
        assert!(result.is_err());
    }
}
