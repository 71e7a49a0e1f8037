//! What a recorder says of itself, read again: by `status` while it runs, as its report when it
//! has ended.

use serde::Deserialize;

use crate::account::Loss;
use crate::progress::Progress;

/// What a recorder says of itself.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct State {
    /// Its process while it records; `None` of one that has ended.
    #[serde(default)]
    pub process: Option<u32>,
    /// How the recording stands, or stood when it ended.
    #[serde(flatten)]
    pub now: Progress,
    /// Packets that were not looked at for names; the report says it.
    #[serde(default)]
    pub unread: u64,
    /// Losses with the state of the pool, as far as they are kept; the report says it.
    #[serde(default)]
    pub losses: Vec<Loss>,
}

/// The state of a recorder: what it answers while it runs, or its report.
pub fn parse_recorder(text: &str) -> Result<State, serde_json::Error> {
    serde_json::from_str(text)
}
