//! Steps of the wall clock while recording: times of packets follow it, so they repeat or leave out
//! a stretch.

use units::Timestamp;

/// A clock that is slewed moves by less than this between two looks.
const STEP_NS: i64 = 50_000_000;

/// Compares the wall clock with the time since boot, which does not step.
#[derive(Debug, Default)]
pub struct ClockSteps {
    /// Wall clock less time since boot, at the last look.
    offset_ns: Option<i64>,
}

impl ClockSteps {
    /// By how much the clock was set forward, or back, since the last look.
    pub fn look(&mut self, realtime: Timestamp, boottime_ns: i64) -> Option<i64> {
        let offset_ns = realtime.0.saturating_sub(boottime_ns);
        let step_ns = offset_ns.saturating_sub(self.offset_ns.replace(offset_ns)?);
        (step_ns.abs() >= STEP_NS).then_some(step_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_once_and_a_drift_never() {
        let mut steps = ClockSteps::default();
        let second = units::NANOS_PER_SECOND;
        assert_eq!(steps.look(Timestamp(1000 * second), second), None);
        assert_eq!(steps.look(Timestamp(1001 * second + 1_000_000), 2 * second), None);
        assert_eq!(
            steps.look(Timestamp(901 * second), 3 * second),
            Some(-101 * second - 1_000_000)
        );
        assert_eq!(steps.look(Timestamp(902 * second), 4 * second), None);
        assert_eq!(steps.look(Timestamp(904 * second), 5 * second), Some(second));
    }
}
