//! Moments until which something is waited for.

use core::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment by the clock that does not jump and stands still while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Duration);

fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

impl Deadline {
    /// So long from now.
    pub(crate) fn after(patience: Duration) -> Self {
        Self(now().saturating_add(patience))
    }

    /// What is left of it, as `poll` takes it; nothing once it is over.
    pub(crate) fn left(self) -> Timespec {
        let left = self.0.saturating_sub(now());
        let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
        Timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() }
    }

    /// Whether it is over.
    pub(crate) fn is_over(self) -> bool {
        now() >= self.0
    }
}
