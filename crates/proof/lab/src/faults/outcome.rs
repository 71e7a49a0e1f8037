//! What came of a situation.

use super::judge::{Found, Verdict};

/// What came of one or two situations at the same time.
pub(super) struct Outcome {
    pub(super) names: Vec<String>,
    pub(super) verdict: Verdict,
    /// Of what was planted, how many the report names.
    pub(super) named: usize,
    pub(super) first: Option<Found>,
}
