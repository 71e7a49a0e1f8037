//! What became of something damaged.

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

/// A superblock copy that was not what the newest one on its member says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCopy {
    /// Number of the member.
    pub member: u8,
    /// Which of the four.
    pub copy: u8,
    /// Whole, and of an earlier state: no damage.
    pub is_old: bool,
    /// What became of it.
    pub fate: Fate,
}
