//! A tag.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which session is tagged with what: a line that `wirespool tag` prints.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfSession {
    /// Id of the session.
    pub session_id: String,
    /// Its community id, where there is IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub community_id: Option<String>,
    /// An alert's signature, a notice, or what somebody has said of it.
    pub tag: String,
    /// 1 is the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<u8>,
    /// Time of the event.
    pub event_ns: i64,
    /// Time of the session's first packet.
    pub start_ns: i64,
    /// The id held only until something else was recorded.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub provisional: bool,
}

/// A tag that is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    /// Of this tag.
    pub id: String,
    /// What it says.
    #[serde(flatten)]
    pub of: OfSession,
    /// Of the session.
    pub volume_id: String,
    /// Who put it there.
    pub by: String,
    /// When.
    pub made_ns: i64,
    /// What who put it there sees at most: others with a filter do not see the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// What was tagged just now.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tagged")]
pub struct Tagged<S> {
    /// A tag for each session that was found.
    pub tags: Vec<Tag>,
    /// How many these are.
    pub count: u64,
    /// What is missing from the sessions that were looked through.
    pub statement: S,
}

/// Tags that are kept.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tags")]
pub struct TagList {
    /// The newest first.
    pub tags: Vec<Tag>,
    /// How many there are, also where fewer are shown.
    pub count: u64,
    /// Tags that the service keeps at most.
    pub count_most: u64,
    /// `limit`, where fewer are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["limit"]))]
    pub cut_by: Option<&'static str>,
}
