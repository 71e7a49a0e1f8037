//! Members that a writer gives up.

use units::{Epoch, MemberId};
use volume::Error;

/// A member that a running writer went on without.
#[derive(Debug)]
pub struct Expelled {
    /// Number of the member.
    pub member: MemberId,
    /// Error for which the member was given up.
    pub reason: Error,
    /// The epoch that began without it.
    pub epoch: Epoch,
}
