//! What findings are about: one explains another only where both are about the same.

use core::ops::Deref;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::Finding;

/// A thing that a finding is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// A block device, by the kernel's name: whole disks, and what is built on them.
    Disk(String),
    /// A file system, by the place where it is mounted.
    Filesystem(String),
    /// A process that waits, or that has what others wait for.
    Process(u32),
    /// A control group, by its name.
    Group(String),
    /// A processor, by its number.
    Processor(u32),
    /// The machine's memory as a whole.
    Memory,
    /// The machine's processors as a whole.
    Processors,
    /// The machine's disks as a whole: something waits, and nothing says for which.
    Disks,
}

/// Everything that a finding is about.
pub type Subjects = BTreeSet<Subject>;

/// A finding, and what it is about. It reads as the finding itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct Found {
    /// What is said.
    #[serde(flatten)]
    pub finding: Finding,
    /// What that is about; empty where no finding of another part can explain it.
    #[serde(skip)]
    pub about: Subjects,
}

impl Finding {
    /// The finding with what it is about.
    #[must_use]
    pub fn about(self, subjects: impl IntoIterator<Item = Subject>) -> Found {
        Found { finding: self, about: subjects.into_iter().collect() }
    }
}

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        finding.about([])
    }
}

impl Deref for Found {
    type Target = Finding;

    fn deref(&self) -> &Finding {
        &self.finding
    }
}
