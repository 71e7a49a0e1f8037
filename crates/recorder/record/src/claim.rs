//! Up to when a queue has sent everything.

use units::Timestamp;

/// What a queue says: everything up to this time lies in the first so many of its columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) sent: u64,
    pub(crate) through: Timestamp,
}

impl Claim {
    pub(crate) const NONE: Self = Self { sent: 0, through: Timestamp::MIN };
}
