//! What is asked for, and that somebody approves it.

use page::safe::json_line;
use serde::{Deserialize, Serialize};
use units::hex;

use crate::party::Party;

/// What is asked for. Fields are keys in JSON, in this order, and their text is what the id of a
/// request is the hash of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// When it was asked, ns since 1970.
    pub made_ns: i64,
    /// From this time on nothing is handed out for it.
    pub until_ns: i64,
    /// Who asks.
    pub requester: Party,
    /// The sessions, within the requester's filter; its times are absolute.
    pub query: String,
    /// What the requester saw at most when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Id of the volume.
    pub volume_id: String,
    /// Of the sessions' packets only those in the query's times.
    pub only_range: bool,
    /// The case that it belongs to.
    pub case: String,
    /// Why it is asked.
    pub purpose: String,
    /// Random, so that no two are the same.
    pub nonce: String,
}

impl Asked {
    /// Its id: BLAKE3 of its text, in hex digits.
    pub fn id(&self) -> String {
        hex(blake3::hash(json_line(self).as_bytes()).as_bytes())
    }
}

/// That somebody approves a request. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// When it was approved, ns since 1970.
    pub made_ns: i64,
    /// Who approves.
    pub approver: Party,
    /// Id of the request, which is the hash of what was asked.
    pub request: String,
    /// What the approver says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Approval {
    /// BLAKE3 of its text, in hex digits.
    pub fn blake3(&self) -> String {
        hex(blake3::hash(json_line(self).as_bytes()).as_bytes())
    }
}
