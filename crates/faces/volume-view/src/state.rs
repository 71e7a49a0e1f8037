//! What a member is good for, as JSON.

use serde::Serialize;
use upkeep::MemberState;

#[derive(Serialize)]
pub(crate) struct StateJson {
    /// `whole`, `stale`, `absent` or `vacant`.
    state: &'static str,
    /// First sequence that it missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_from: Option<u64>,
    /// First sequence that is whole again, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    clean_from: Option<u64>,
}

impl StateJson {
    pub(crate) fn new(state: MemberState) -> Self {
        let (state, stale_from, clean_from) = match state {
            MemberState::Whole => ("whole", None, None),
            MemberState::Absent => ("absent", None, None),
            MemberState::Vacant => ("vacant", None, None),
            MemberState::Stale { from, to } => {
                ("stale", Some(from), Some(to).filter(|&to| to != u64::MAX))
            }
        };
        Self { state, stale_from, clean_from }
    }
}
