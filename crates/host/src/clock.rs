//! The system's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};
use units::{Clock, NANOS_PER_SECOND, Timestamp};

/// The real implementation of [`Clock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

fn nanos(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(NANOS_PER_SECOND).saturating_add(time.tv_nsec)
}

impl Clock for SystemClock {
    fn realtime(&self) -> Timestamp {
        Timestamp(nanos(clock_gettime(ClockId::Realtime)))
    }

    fn boottime_ns(&self) -> i64 {
        nanos(clock_gettime(ClockId::Boottime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_run_and_tell_this_century() {
        let (first, boot) = (SystemClock.realtime(), SystemClock.boottime_ns());
        assert!(first.to_string().starts_with("20"), "{first}");
        while SystemClock.boottime_ns() == boot {}
        assert!(SystemClock.boottime_ns() > boot);
    }
}
