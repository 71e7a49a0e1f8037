//! From the times at which writes were done to the rate that a disk guarantees.

use units::number::real;

/// Completed writes: seconds since the one before, and bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    steps: Vec<(f64, f64)>,
}

impl Trace {
    pub(super) fn push(&mut self, nanoseconds: u64, bytes: u64) {
        self.steps.push((real(nanoseconds) / 1e9, real(bytes)));
    }

    /// Bytes a second over everything.
    pub(super) fn mean(&self) -> f64 {
        let seconds: f64 = self.steps.iter().map(|step| step.0).sum();
        let bytes: f64 = self.steps.iter().map(|step| step.1).sum();
        bytes / seconds
    }

    /// The largest constant arrival, in bytes a second, that never fills a pool of `pool_bytes` in
    /// two laps: Lindley's recursion, and bisection.
    pub(super) fn guaranteed(&self, pool_bytes: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.mean());
        for _ in 0..40 {
            let rate = f64::midpoint(low, high);
            let (mut backlog, mut worst) = (0.0_f64, 0.0_f64);
            for (seconds, bytes) in self.steps.iter().chain(&self.steps) {
                backlog = (backlog + rate * seconds - bytes).max(0.0);
                worst = worst.max(backlog);
            }
            if worst <= pool_bytes {
                low = rate;
            } else {
                high = rate;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_carries_what_a_slow_stretch_leaves_over() {
        // 100 bytes a second for 10 s, then 50 for 10 s: at rate r the backlog grows to
        // 10 (r - 50), and a pool of 200 carries r = 70.
        let mut trace = Trace::default();
        for bytes in [100, 50] {
            (0..10).for_each(|_| trace.push(1_000_000_000, bytes));
        }
        assert!((trace.mean() - 75.0).abs() < 1e-9);
        let check = |pool: f64, rate: f64| {
            assert!((trace.guaranteed(pool) - rate).abs() < 1e-6, "{pool}");
        };
        check(0.0, 50.0);
        check(200.0, 70.0);
        check(1000.0, 75.0);
    }
}
