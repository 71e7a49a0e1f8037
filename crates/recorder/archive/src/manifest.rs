//! What a part of the ring has given, as JSON: the part is archived when this is stored.

use completeness::State;
use format::head::StripeId;
use serde::{Deserialize, Serialize};
use units::Epoch;

use crate::names::{self, Unit, stripe};

/// Of the manifests that are written.
pub(crate) const VERSION: u16 = 1;

/// An object as a manifest has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Object {
    /// Its name in the store.
    #[serde(deserialize_with = "names::within")]
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// BLAKE3 of its bytes, in hex digits.
    pub blake3: String,
}

impl Object {
    pub(crate) fn of(name: String, bytes: &[u8], rows: usize) -> Self {
        let (rows, blake3) = (units::number::to_u64(rows), hash(bytes));
        Self { name, bytes: units::number::to_u64(bytes.len()), rows, blake3 }
    }

    /// What is wrong with these bytes, if anything is.
    pub(crate) fn wrong(&self, bytes: &[u8]) -> Option<String> {
        let length = units::number::to_u64(bytes.len());
        if length != self.bytes {
            return Some(format!("it has {length} bytes, its manifest says {}", self.bytes));
        }
        let is_other = hash(bytes) != self.blake3;
        is_other.then(|| "it does not match the BLAKE3 hash of its manifest".to_owned())
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    units::hex(blake3::hash(bytes).as_bytes())
}

/// Sessions that may go on behind a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OpenObject {
    #[serde(flatten)]
    pub(crate) object: Object,
    /// The opening of the volume that they are of.
    pub(crate) epoch: Epoch,
}

/// What a part has given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u16,
    /// Of the tables' columns.
    pub(crate) schema: u16,
    pub(crate) sensor: String,
    pub(crate) volume: String,
    /// First stripe.
    pub(crate) first: String,
    /// Last stripe.
    pub(crate) last: String,
    /// What distinguishes the last stripe from another one of its number. Versions before did not
    /// say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    /// No recorder ran behind it.
    pub(crate) is_end: bool,
    /// Last stripe of the part that was archived before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<String>,
    /// Sessions that are over.
    pub(crate) sessions: u64,
    /// Packets known to be missing, where that is known, and stretches of stripes that were
    /// overwritten before they were archived.
    pub(crate) lost_packets: u64,
    pub(crate) overwritten_slots: u64,
    /// `complete`, `unknown` or `incomplete`, as answers are.
    pub(crate) state: String,
    /// The same of this part and all before it. Versions before did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) archive_state: Option<String>,
    pub(crate) objects: Vec<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<OpenObject>,
}

/// What is about to be stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The manifest is as it will be: when all that it names is there, it may be stored.
    pub(crate) is_whole: bool,
    pub(crate) manifest: Manifest,
}

/// Why a text is no manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Not JSON of this shape.
    #[error("it is no manifest of an archive: {0}")]
    Json(#[from] serde_json::Error),
    /// Of a later version.
    #[error("it has version {0}, this program knows 1: use a newer one")]
    Version(u16),
    /// A stripe or a volume is none.
    #[error("it is no manifest of an archive: a stripe in it is none")]
    Stripe,
}

impl Manifest {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_slice(bytes)?;
        manifest.checked()
    }

    fn checked(self) -> Result<Self, ManifestError> {
        if self.version != VERSION {
            return Err(ManifestError::Version(self.version));
        }
        self.unit().map(|_| self).ok_or(ManifestError::Stripe)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        page::safe::json_pretty(self).into_bytes()
    }

    pub(crate) fn unit(&self) -> Option<Unit> {
        Some(Unit { first: stripe(&self.first)?, last: stripe(&self.last)?, is_end: self.is_end })
    }

    /// What can be said of this part and all before it, as far as it says.
    pub(crate) fn archive_state(&self) -> State {
        let name = self.archive_state.as_ref().unwrap_or(&self.state);
        State::named(name).unwrap_or(State::Unknown)
    }

    pub(crate) fn last(&self) -> Option<StripeId> {
        stripe(&self.last)
    }
}

impl Pending {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        let pending: Self = serde_json::from_slice(bytes)?;
        Ok(Self { manifest: pending.manifest.checked()?, ..pending })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        page::safe::json_pretty(self).into_bytes()
    }
}
