//! What an extract is made for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an extract is made for, in the words of who makes it. Nothing of it is checked. Fields are
/// keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CaseInfo {
    /// The case that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Why it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Who has asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
}

impl CaseInfo {
    /// Bytes of UTF-8 that each of the texts may have.
    pub const BYTES_MAX: usize = 1024;

    /// What is said, each with its name.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all =
            [("case", &self.case), ("purpose", &self.purpose), ("requester", &self.requester)];
        all.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }
}
