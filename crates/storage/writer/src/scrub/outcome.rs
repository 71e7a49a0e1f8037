//! What became of something damaged.

use volume::Error;

/// What became of something damaged.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Written anew, flushed and read back.
    Repaired,
    /// The other members have it; nothing was to be written.
    Repairable,
    /// The other members do not have it either.
    Lost,
    /// As far as the others have it, it was repaired, or could be; these rows cannot be had.
    Partly {
        /// Body rows, ascending.
        lost_rows: Vec<u16>,
        /// The others were written anew.
        repaired: bool,
    },
    /// The ring is about to overwrite it.
    Passing,
    /// The member did not take the repair.
    Failed(Error),
}
