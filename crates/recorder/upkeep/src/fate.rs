//! What became of something damaged.

use serde::{Serialize, Serializer};
use units::MemberId;

/// What became of something damaged.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// Written anew, flushed and read back.
    Repaired,
    /// The other members have it; this was a dry run.
    Repairable,
    /// The other members do not have it either.
    Lost,
    /// What is behind these byte offsets of the member cannot be had, a row of 4096 bytes each; the
    /// rest is repaired, or could be.
    Partly(Vec<u64>),
    /// The ring is about to overwrite it.
    Passing,
    /// The repair could not be written, in words.
    Failed(String),
}

impl Fate {
    /// Which it is, for programs.
    fn name(&self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Repairable => "repairable",
            Self::Lost => "lost",
            Self::Partly(_) => "partly lost",
            Self::Passing => "passing",
            Self::Failed(_) => "failed",
        }
    }
}

/// As its name alone.
impl Serialize for Fate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// A superblock copy that was not what the newest one on its member says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BadCopy {
    /// Number of the member.
    pub member: MemberId,
    /// Which of the four.
    pub copy: u8,
    /// Whole, and of an earlier state: no damage.
    #[serde(rename = "old")]
    pub is_old: bool,
    /// What became of it.
    pub fate: Fate,
}
