//! Anchors: what a volume held at one moment, in a statement that is kept elsewhere.

use format::head::{SEQUENCE_MAX, StripeId, VolumeId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use units::{Epoch, Timestamp, unhex};

use crate::attested::{Attested, Trust, Vouched};
use crate::listed::{ListError, ListedStripes};
use crate::maker::Maker;
use crate::seal::{Seal, SealTextError, split_sealed};

/// Of the anchors that are written.
pub const ANCHOR_VERSION: u16 = 1;

/// A statement as JSON has it, in this order. A seal follows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnchorForm {
    /// [`ANCHOR_VERSION`].
    pub anchor_version: u16,
    /// When it was made, by the clock of the machine, ns since 1970.
    pub made_ns: i64,
    /// By whom.
    pub made_by: Maker,
    /// Of this volume, in hex digits.
    pub volume_id: String,
    /// Newest opening of the volume.
    pub epoch: Epoch,
    /// Newest acknowledged stripe.
    pub newest: String,
    /// Its identity, in hex digits.
    pub newest_cid: String,
    /// When that stripe was sealed, by the recorder's clock, ns since 1970.
    pub newest_sealed_ns: i64,
    /// First stripe of the list.
    pub first: String,
    /// Records of the list.
    pub records: u64,
    /// Of those, pieces that could not be read.
    pub unreadable: u64,
    /// The list has hashes of bodies; else identities of stripes alone.
    pub contents: bool,
    /// BLAKE3 of the list, in hex digits.
    pub list_blake3: String,
    /// The anchor before, whose stripes are not listed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousForm>,
}

/// Another anchor, by its hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PreviousForm {
    /// BLAKE3 of its text, in hex digits.
    pub blake3: String,
    /// Its newest stripe.
    pub newest: String,
}

/// A text is no anchor.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnchorError {
    /// Not JSON of this shape.
    #[error("it is no anchor: {0}")]
    Json(#[source] serde_json::Error),
    /// Of a later version.
    #[error("it is an anchor of version {0}; known is {ANCHOR_VERSION}")]
    Version(u16),
    /// Its seal.
    #[error(transparent)]
    Seal(#[from] SealTextError),
    /// Not the list that belongs to it.
    #[error("the list of stripes beside it is not its own, or was changed")]
    OtherList,
    /// The list.
    #[error("the list of stripes beside it: {0}")]
    List(#[source] ListError),
    /// A hash, id or stripe.
    #[error("it has a hash, an id or a stripe that is none")]
    Value,
}

/// An anchor that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadAnchor<'a> {
    /// What it says.
    pub form: AnchorForm,
    /// Of this volume.
    pub volume: VolumeId,
    /// First stripe of the list.
    pub first: StripeId,
    /// Newest acknowledged stripe.
    pub newest: StripeId,
    /// Its identity.
    pub newest_cid: [u8; 32],
    /// Hash of the list.
    pub list_blake3: [u8; 32],
    /// What is sealed.
    pub text: &'a str,
    /// By this seal.
    pub seal: Seal,
}

/// Reads an anchor; whether its seal is right is not looked at.
///
/// # Errors
/// When it is none.
pub fn parse_anchor(text: &str) -> Result<ReadAnchor<'_>, AnchorError> {
    let form: AnchorForm = serde_json::from_str(text).map_err(AnchorError::Json)?;
    if form.anchor_version != ANCHOR_VERSION {
        return Err(AnchorError::Version(form.anchor_version));
    }
    let (sealed, seal) = split_sealed(text)?;
    let hash = |text: &str| unhex(text).ok_or(AnchorError::Value);
    let stripe = |text: &str| parse_stripe(text).ok_or(AnchorError::Value);
    let (first, newest) = (stripe(&form.first)?, stripe(&form.newest)?);
    let (newest_cid, list_blake3) = (hash(&form.newest_cid)?, hash(&form.list_blake3)?);
    let volume = VolumeId(unhex(&form.volume_id).ok_or(AnchorError::Value)?);
    Ok(ReadAnchor { form, volume, first, newest, newest_cid, list_blake3, text: sealed, seal })
}

/// An anchor with its list of stripes, which fit each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedAnchor {
    /// What it says.
    pub form: AnchorForm,
    /// Of this volume.
    pub volume: VolumeId,
    /// First stripe of the list.
    pub first: StripeId,
    /// Newest acknowledged stripe.
    pub newest: StripeId,
    /// The list.
    pub list: ListedStripes,
    /// Who vouches for it.
    pub attested: Attested,
    /// SHA-256 of its text, as witness files have it.
    pub sha256: [u8; 32],
    /// BLAKE3 of its text, as the anchor that follows has it.
    pub blake3: [u8; 32],
}

impl CheckedAnchor {
    /// Reads an anchor, its list, and what lies beside them.
    ///
    /// # Errors
    /// When the text is no anchor, or the list not its own.
    pub fn read(
        text: &str,
        list: &[u8],
        (signature, stamp): (Option<&str>, Option<&[u8]>),
        trust: &Trust,
    ) -> Result<Self, AnchorError> {
        let read = parse_anchor(text)?;
        let ReadAnchor { form, volume, first, newest, .. } = read;
        let (newest_cid, list_blake3) = (read.newest_cid, read.list_blake3);
        let (sealed, seal) = (read.text, read.seal);
        if *blake3::hash(list).as_bytes() != list_blake3 {
            return Err(AnchorError::OtherList);
        }
        let list = ListedStripes::parse(list).map_err(AnchorError::List)?;
        let ends = list.records.first().zip(list.records.last());
        let fits = ends.is_some_and(|(from, to)| {
            (from.stripe, to.stripe, to.cid) == (first, newest, newest_cid)
        });
        let count = u64::try_from(list.records.len()).ok();
        if !fits || list.volume != volume || count != Some(form.records) {
            return Err(AnchorError::OtherList);
        }
        let made = Timestamp(form.made_ns);
        let of = Vouched { text, sealed: Some((sealed, &seal)), made, signature, stamp };
        let attested = Attested::check(&of, trust);
        let sha256 = Sha256::digest(text).into();
        let blake3 = *blake3::hash(text.as_bytes()).as_bytes();
        Ok(Self { form, volume, first, newest, list, attested, sha256, blake3 })
    }

    /// When it was there at the latest, by an authority that is trusted.
    pub fn stamped(&self) -> Option<Timestamp> {
        let stamp = self.attested.stamp.as_ref()?.as_ref().ok()?;
        stamp.is_trusted.then_some(stamp.at)
    }
}

/// `SEQUENCE.SUB`.
pub(crate) fn parse_stripe(text: &str) -> Option<StripeId> {
    let (sequence, sub) = text.split_once('.')?;
    let stripe = StripeId { sequence: sequence.parse().ok()?, sub: sub.parse().ok()? };
    (stripe.sequence <= SEQUENCE_MAX && stripe.to_string() == text).then_some(stripe)
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use super::*;

    #[test]
    fn a_stripe_is_read_as_it_is_written() {
        let stripe = StripeId { sequence: Sequence(4091), sub: 2 };
        assert_eq!(parse_stripe("4091.2"), Some(stripe));
        for text in
            ["", "4091", "4091.", "+4091.2", "4091.02", "4091.65536", "1152921504606846977.0"]
        {
            assert_eq!(parse_stripe(text), None, "{text}");
        }
    }
}
