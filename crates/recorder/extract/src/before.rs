//! What is known of the sessions that go on in a part of which no index is left.

use units::Timestamp;

/// The segments before a part whose sessions may go on in it.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    /// Opening of the volume that wrote the part's first stripe.
    pub(crate) epoch: u32,
    /// No packet of the part came before.
    pub(crate) at: Timestamp,
    /// Their files, the newest first.
    pub(crate) files: Vec<Vec<u8>>,
}
