//! A piece of time in which work is done again and again.

use units::Clock;
use units::number::{between, real};

/// A piece of time.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) ns: u64,
}

impl Slice<'_> {
    pub(super) fn now_ns(self) -> i64 {
        self.clock.boottime_ns()
    }

    /// Works until it is over; what the work gave, a second.
    pub(super) fn rate(self, mut work: impl FnMut() -> f64) -> f64 {
        let begin_ns = self.now_ns();
        let mut done = 0.0;
        loop {
            done += work();
            let ns = between(begin_ns, self.now_ns());
            if ns >= self.ns {
                return per_second(done, ns);
            }
        }
    }
}

/// Of no time at all, as of a nanosecond.
pub(super) fn per_second(done: f64, ns: u64) -> f64 {
    done * 1e9 / real(ns.max(1))
}
