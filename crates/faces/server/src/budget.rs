//! How many lines there may be: so many at once, and so many a second beyond.

use units::NANOS_PER_SECOND;

/// What is left of them.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    per_s: u64,
    left: u64,
    since_ns: i64,
}

impl Budget {
    pub(crate) fn new(most: u64, per_s: u64, now_ns: i64) -> Self {
        Self { most, per_s, left: most, since_ns: now_ns }
    }

    /// Whether one more line is within it.
    pub(crate) fn take(&mut self, now_ns: i64) -> bool {
        let second = NANOS_PER_SECOND.unsigned_abs();
        let passed_ns = now_ns.saturating_sub(self.since_ns).max(0).unsigned_abs();
        let earned = passed_ns.saturating_mul(self.per_s) / second;
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(self.most);
            self.since_ns = now_ns;
        }
        let is_within = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_rate_are_left_out() {
        let mut budget = Budget::new(500, 50, 0);
        assert_eq!((0..1000).filter(|_| budget.take(0)).count(), 500);
        assert_eq!((0..100).filter(|_| budget.take(NANOS_PER_SECOND)).count(), 50);
        assert!(!budget.take(NANOS_PER_SECOND));
    }
}
