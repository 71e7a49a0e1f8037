//! What became of a recorder's last hand-over.

use serde::{Deserialize, Serialize};

/// The last time that another recorder asked to take over. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HandOver {
    /// Which process asked; absent where it is of another namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// From when on packets were to be its own, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Why this recorder went on; absent while it is not known who does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_back: Option<String>,
    /// How often this recorder went on since it began.
    pub times_taken_back: u64,
}
