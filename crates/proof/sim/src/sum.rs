//! What histories come to together.

use units::mix;

use crate::check::Violation;
use crate::counters::Counters;
use crate::history::Outcome;

/// What all histories came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) seeds: u64,
    pub(crate) counters: Counters,
    /// Of all histories, in whatever order they ended.
    pub(crate) digest: u64,
    /// By seed.
    pub(crate) failures: Vec<(u64, String)>,
}

impl Sum {
    /// Adds the seeds that follow.
    pub(crate) fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.counters.merge(&other.counters);
        self.digest = self.digest.wrapping_add(other.digest);
        self.failures.extend(other.failures);
    }

    /// Adds one history.
    pub(crate) fn take(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.counters.merge(&outcome.counters);
        self.digest = self.digest.wrapping_add(mix(outcome.digest ^ seed));
        if let Err(Violation(what)) = outcome.verdict {
            self.failures.push((seed, what));
        }
    }
}
