//! Who has the processors and disks of a machine, and who waits for them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::subject::Subjects;

/// Who has, or waits for, something that there is only so much of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Share {
    /// What it is about.
    pub of: &'static str,
    /// Who has it or waits for it, and how much.
    pub what: String,
    /// The kind of finding that has the detail, where one was found.
    pub finding: Option<&'static str>,
    /// The disk or the processes that it names.
    #[serde(skip)]
    pub about: Subjects,
}
