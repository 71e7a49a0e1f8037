//! Whether anchors list the stripes that an extract was made from.

use format::head::{StripeId, VolumeId};
use units::Timestamp;

use crate::anchor::CheckedAnchor;
use crate::listed::Body;

/// A piece as the manifest of an extract names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedPiece {
    /// Its stripe.
    pub stripe: StripeId,
    /// Its column.
    pub column: u8,
    /// Identity of its stripe, where the manifest has it.
    pub cid: Option<[u8; 32]>,
    /// BLAKE3 of its body as it lies on the member: raw extracts have whole bodies.
    pub body: Option<[u8; 32]>,
}

/// An extract after an anchor of its volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Pieces whose stripes the anchor lists by the identity that the manifest names, and whose
    /// bodies, as far as both have a hash of them, are the same.
    pub covered: u64,
    /// Of those the ones whose bodies were compared.
    pub bodies: u64,
    /// Pieces whose stripes it lists by another identity.
    pub other: u64,
    /// Pieces whose bodies it lists by another hash.
    pub changed: u64,
    /// Pieces whose stripes it does not list: they lie before or behind what it saw.
    pub unlisted: u64,
    /// When the anchor was there at the latest, by an authority that is trusted.
    pub stamped: Option<Timestamp>,
}

impl Coverage {
    /// Nothing that can be compared is another.
    pub fn is_same(&self) -> bool {
        self.other == 0 && self.changed == 0
    }
}

/// Compares the pieces that a manifest names with an anchor; `None` where they are of two volumes,
/// or the manifest does not name their identities.
pub fn coverage(
    volume: Option<VolumeId>,
    pieces: &[NamedPiece],
    anchor: &CheckedAnchor,
) -> Option<Coverage> {
    if volume != Some(anchor.volume) {
        return None;
    }
    let mut found = Coverage { stamped: anchor.stamped(), ..Coverage::default() };
    for NamedPiece { stripe, column, cid, body } in pieces {
        let cid = cid.as_ref()?;
        let Some(listed) = anchor.list.cid_of(*stripe) else {
            found.unlisted += 1;
            continue;
        };
        let listed_body = match anchor.list.body_of(*stripe, *column) {
            Some(Body::Hash(hash)) => Some(hash),
            _ => None,
        };
        match body.as_ref().zip(listed_body) {
            _ if listed != cid => found.other += 1,
            Some((body, listed)) if *body != listed => found.changed += 1,
            compared => {
                found.covered += 1;
                found.bodies += u64::from(compared.is_some());
            }
        }
    }
    Some(found)
}
