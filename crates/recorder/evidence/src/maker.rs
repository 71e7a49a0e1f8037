//! Who made an extract or an anchor.

use serde::{Deserialize, Serialize};

/// Who made it, where and with what. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Maker {
    /// Name and version of the program.
    pub program: String,
    /// Name of the machine.
    pub host: String,
    /// The user that the program ran as.
    pub user: String,
    /// Who called it as that user, where sudo or pkexec say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
}
