//! Latencies of each eighth of a measurement: how they drift, which a histogram does not say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;

const EIGHTHS: u64 = 8;

/// Percentiles of one eighth; what too few latencies say nothing of is `None`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Eighth {
    /// Half took no longer.
    pub p50_ns: Option<u64>,
    /// 99 of 100.
    pub p99_ns: Option<u64>,
    /// 999 of 1000.
    pub p99_9_ns: Option<u64>,
    /// 9999 of 10 000.
    pub p99_99_ns: Option<u64>,
}

impl Eighth {
    fn of(latencies: &Latencies) -> Self {
        let [p50_ns, p99_ns, p99_9_ns, last] = SHARES.map(|share| latencies.quantile_ns(share));
        Self { p50_ns, p99_ns, p99_9_ns, p99_99_ns: last }
    }

    /// That which a share of a million did not exceed.
    pub fn quantile_ns(&self, share: u32) -> Option<u64> {
        let at = SHARES.iter().position(|known| *known == share)?;
        [self.p50_ns, self.p99_ns, self.p99_9_ns, self.p99_99_ns].get(at).copied().flatten()
    }
}

/// Shares of latencies, in millionths.
pub const SHARES: [u32; 4] = [500_000, 990_000, 999_000, 999_900];

/// Latencies as they come.
#[derive(Clone, Debug)]
pub struct Eighths([Latencies; 8]);

impl Default for Eighths {
    fn default() -> Self {
        Self(core::array::from_fn(|_| Latencies::default()))
    }
}

impl Eighths {
    /// One that ended when `done` of `total` was over.
    pub fn add(&mut self, (done, total): (u64, u64), latency_ns: u64) {
        if let Some(latencies) = self.0.get_mut(eighth(done, total)) {
            latencies.add(latency_ns);
        }
    }

    /// How many each has.
    pub fn counts(&self) -> Vec<u64> {
        self.0.iter().map(Latencies::count).collect()
    }

    /// Percentiles of each.
    pub fn finish(&self) -> Vec<Eighth> {
        self.0.iter().map(Eighth::of).collect()
    }
}

fn eighth(done: u64, total: u64) -> usize {
    let at = u128::from(done) * u128::from(EIGHTHS) / u128::from(total.max(1));
    usize::try_from(at.min(u128::from(EIGHTHS - 1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_latencies_of_its_time() {
        let mut eighths = Eighths::default();
        for at in 0..800 {
            eighths.add((at, 800), if at < 700 { 1000 } else { 9000 });
        }
        eighths.add((900, 800), 9000);
        assert_eq!(eighths.counts(), [100, 100, 100, 100, 100, 100, 100, 101]);
        let found = eighths.finish();
        assert!(found[6].p50_ns.unwrap() < 1100 && found[7].p50_ns.unwrap() >= 9000, "{found:?}");
        assert_eq!(found[0].quantile_ns(999_900), None, "of too few");
    }
}
