//! All that a diagnosis says, in its order.

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::{Severity, Unseen};
use crate::order;
use crate::share::Share;
use crate::subject::Found;

/// All that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// What was looked at, in words.
    pub looked_at: Vec<String>,
    /// Who has the processors and disks, and who waits; of a machine with little to do nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// The worst first.
    pub findings: Vec<Found>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

impl Diagnosis {
    /// With its findings in their order.
    #[must_use]
    pub fn ranked(mut self) -> Self {
        order::sort(&mut self.findings);
        for share in &mut self.shares {
            let place = order::detail(&self.findings, share);
            share.finding = place.and_then(|at| Some(self.findings.get(at)?.kind));
        }
        self
    }

    /// The place of the finding that explains the one at a place.
    pub fn explanation(&self, of: usize) -> Option<usize> {
        order::explanation(&self.findings, self.findings.get(of)?)
    }

    /// The place of the finding that has the detail of a share.
    pub fn detail(&self, share: &Share) -> Option<usize> {
        order::detail(&self.findings, share)
    }

    /// Joins several diagnoses into one.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.looked_at.extend(part.looked_at);
            all.shares.extend(part.shares);
            all.findings.extend(part.findings);
            all.unseen.extend(part.unseen);
        }
        all.ranked()
    }

    /// Whether something is found that should not be so.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }
}
