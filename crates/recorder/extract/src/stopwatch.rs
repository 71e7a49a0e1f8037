//! How long the steps of a run take.

use units::Clock;

/// Times one step after the other.
pub(crate) struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    since: i64,
}

impl<'a> Stopwatch<'a> {
    pub(crate) fn start(clock: &'a dyn Clock) -> Self {
        Self { clock, since: clock.boottime_ns() }
    }

    /// Nanoseconds since the start or the lap before.
    pub(crate) fn lap(&mut self) -> i64 {
        let now = self.clock.boottime_ns();
        now - core::mem::replace(&mut self.since, now)
    }
}
