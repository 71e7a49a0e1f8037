//! The clock of latencies. Crates take their time from `units::Clock`; a latency never leaves this
//! crate as a point in time, so it needs no argument.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on a clock that never goes back; only differences mean anything.
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).expect("the monotonic clock is positive and lasts 584 years")
}
