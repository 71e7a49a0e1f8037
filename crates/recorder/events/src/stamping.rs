//! What the recorder knows of the clock that packets have their times from.

use format::recorded::RecordedClock;
use units::{Clock, NANOS_PER_SECOND};

use crate::steps::ClockSteps;

/// The clocks are looked at so often at most.
const LOOK_NS: i64 = NANOS_PER_SECOND;

/// Looks at the clocks, and remembers what they said.
#[derive(Debug)]
pub struct ClockWatch {
    said: RecordedClock,
    steps: ClockSteps,
    next_ns: i64,
}

impl ClockWatch {
    /// `said` names who stamps packets.
    pub fn new(said: RecordedClock) -> Self {
        Self { said, steps: ClockSteps::default(), next_ns: i64::MIN }
    }

    /// Looks at the clocks, if the last look was a second ago.
    pub fn look(&mut self, clock: &dyn Clock) {
        let now_ns = clock.boottime_ns();
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(LOOK_NS);
        let is_set = self.steps.look(clock.realtime(), clock.boottime_ns()).is_some();
        self.said.steps = self.said.steps.saturating_add(u16::from(is_set));
        self.said.state = clock.state();
    }

    /// What is known by now.
    pub fn said(&self) -> RecordedClock {
        self.said
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicI64, Ordering};

    use units::{ClockState, Timestamp};

    use super::*;

    /// Wall-clock time and time since boot, in milliseconds.
    #[derive(Default)]
    struct Clocks(AtomicI64, AtomicI64);

    impl Clock for Clocks {
        fn realtime(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed) * 1_000_000)
        }

        fn boottime_ns(&self) -> i64 {
            self.1.load(Ordering::Relaxed) * 1_000_000
        }

        fn state(&self) -> Option<ClockState> {
            let is_synchronised = self.boottime_ns() > 3 * NANOS_PER_SECOND;
            Some(ClockState { is_synchronised, ..ClockState::default() })
        }
    }

    #[test]
    fn what_the_clocks_say_is_remembered_and_steps_are_counted() {
        let clocks = Clocks::default();
        let mut watch = ClockWatch::new(RecordedClock::default());
        let mut after = |wall_ms: i64, boot_ms: i64| {
            clocks.0.fetch_add(wall_ms, Ordering::Relaxed);
            clocks.1.fetch_add(boot_ms, Ordering::Relaxed);
            watch.look(&clocks);
            let said = watch.said();
            (said.steps, said.state.is_some_and(|state| state.is_synchronised))
        };
        assert_eq!(after(0, 0), (0, false));
        assert_eq!(after(1001, 1000), (0, false), "corrected slowly");
        assert_eq!(after(1200, 1000), (1, false), "set forward");
        assert_eq!(after(5000, 500), (1, false), "not looked at again within a second");
        assert_eq!(after(-3_600_000, 1000), (2, true), "set back");
        assert_eq!(after(60_000, 60_000), (2, true));
    }
}
