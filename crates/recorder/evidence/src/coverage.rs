//! Whether anchors list the stripes that an extract was made from.

use format::head::{StripeId, VolumeId};
use units::Timestamp;

use crate::anchor::CheckedAnchor;

/// An extract after an anchor of its volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Pieces whose stripes the anchor lists by the identity that the manifest names.
    pub covered: u64,
    /// Pieces whose stripes it lists by another identity.
    pub other: u64,
    /// Pieces whose stripes it does not list: they lie before or behind what it saw.
    pub unlisted: u64,
    /// When the anchor was there at the latest, by an authority that is trusted.
    pub stamped: Option<Timestamp>,
}

/// Compares the stripes that a manifest names, one for each piece, with an anchor; `None` where
/// they are of two volumes, or the manifest does not name their identities.
pub fn coverage(
    volume: Option<VolumeId>,
    stripes: &[(StripeId, Option<[u8; 32]>)],
    anchor: &CheckedAnchor,
) -> Option<Coverage> {
    if volume != Some(anchor.volume) {
        return None;
    }
    let mut found = Coverage { stamped: anchor.stamped(), ..Coverage::default() };
    for (stripe, cid) in stripes {
        match (anchor.list.cid_of(*stripe), cid) {
            (_, None) => return None,
            (None, _) => found.unlisted += 1,
            (Some(listed), Some(cid)) if listed == cid => found.covered += 1,
            (Some(_), Some(_)) => found.other += 1,
        }
    }
    Some(found)
}
