//! How a store is used: how fast, and how patiently. Rules alone: who waits, and for what, is told.

use units::NANOS_PER_SECOND;

use crate::store::StoreError;

/// Between two attempts, at first and at most.
pub(crate) const PAUSE_NS: i64 = NANOS_PER_SECOND / 4;
const PAUSE_NS_MAX: i64 = 30 * NANOS_PER_SECOND;
/// So long is tried where nothing else is to be waited for.
const PATIENCE_NS: i64 = 10 * NANOS_PER_SECOND;
/// While a recorder runs, as long as a part took is rested behind it, at most so long.
const REST_NS_MAX: i64 = NANOS_PER_SECOND / 2;
/// Between two looks at a volume on which everything closed is archived.
pub const LOOK_NS: i64 = NANOS_PER_SECOND;

/// How a store is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manners {
    /// Bytes a second that are stored at most.
    pub rate: Option<u64>,
    /// A store that is away is waited for, however long.
    pub waits: bool,
}

/// No more than so many bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    rate: Option<u64>,
    /// Not before this time the next object is stored.
    next_ns: i64,
}

impl Throttle {
    /// With this rate, or none.
    pub fn new(rate: Option<u64>) -> Self {
        Self { rate, next_ns: i64::MIN }
    }

    /// When the next object may be stored; `None` at once.
    pub fn next_ns(&self) -> Option<i64> {
        self.rate.map(|_| self.next_ns)
    }

    /// An object of so many bytes is stored now.
    pub fn count(&mut self, bytes: usize, now_ns: i64) {
        if let Some(rate) = self.rate {
            let length = i128::from(units::number::to_u64(bytes));
            let takes = length * i128::from(NANOS_PER_SECOND) / i128::from(rate.max(1));
            let takes = i64::try_from(takes).unwrap_or(i64::MAX);
            self.next_ns = self.next_ns.max(now_ns).saturating_add(takes);
        }
    }
}

/// How long an attempt is repeated, and when.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    manners: Manners,
    begun_ns: i64,
    pause_ns: i64,
}

impl Patience {
    /// Of a call that begins now.
    pub fn new(manners: Manners, now_ns: i64) -> Self {
        Self { manners, begun_ns: now_ns, pause_ns: PAUSE_NS }
    }

    /// The attempt has failed: how long to wait before the next one; `None` where there is none.
    /// `has_answered`: the store did before, so that what it refuses may pass.
    pub fn pause(&mut self, error: &StoreError, has_answered: bool, now_ns: i64) -> Option<i64> {
        let waited_ns = now_ns.saturating_sub(self.begun_ns);
        let may_pass = match error {
            StoreError::Away { .. } => self.manners.waits || waited_ns < PATIENCE_NS,
            StoreError::Refused { .. } => self.manners.waits && has_answered,
            StoreError::Stopped => false,
        };
        let pause_ns = self.pause_ns;
        self.pause_ns = pause_ns.saturating_mul(2).min(PAUSE_NS_MAX);
        may_pass.then_some(pause_ns)
    }
}

/// How long to rest behind a part that took so long, while a recorder runs.
pub fn rest_after(took_ns: i64) -> i64 {
    took_ns.min(REST_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_who_does_not_wait_gives_up_after_ten_seconds() {
        let away = StoreError::Away { url: String::new(), why: String::new() };
        for waits in [false, true] {
            let (mut now_ns, mut pauses) = (0, Vec::new());
            let mut patience = Patience::new(Manners { rate: None, waits }, now_ns);
            while pauses.len() < 10
                && let Some(pause_ns) = patience.pause(&away, true, now_ns)
            {
                pauses.push(pause_ns / 1_000_000);
                now_ns += pause_ns;
            }
            let all = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000];
            let expected = if waits { &all[..] } else { &all[..6] };
            assert_eq!(pauses, expected);
        }
    }
}
