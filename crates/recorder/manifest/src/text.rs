//! The form of a manifest as text, and reading it: what is compared with the files that it is of.

use completeness::State;
use evidence::{
    CaseInfo, NamedPiece, OutputSummary, Seal, SealTextError, hex_digits, split_sealed,
};
use format::head::{StripeId, VolumeId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use units::{Sequence, Timestamp, unhex};

use crate::asked::NamedEscrow;

/// Of the manifests that are written. Version 1 had no seal.
pub const MANIFEST_VERSION: u16 = 2;

/// The text is no manifest.
#[derive(Debug)]
pub enum ManifestError {
    /// Not JSON of this shape.
    Json(serde_json::Error),
    /// Of a later version.
    Version(u16),
    /// No seal at its end, or one that cannot be read.
    Seal(SealTextError),
}

impl core::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a manifest of an extract: {error}"),
            Self::Version(version) => {
                write!(f, "the manifest has version {version}, known are 1 and {MANIFEST_VERSION}")
            }
            Self::Seal(error) => write!(f, "the manifest cannot be checked: {error}"),
        }
    }
}

impl core::error::Error for ManifestError {}

#[derive(Deserialize)]
struct ManifestRead {
    version: u16,
    #[serde(flatten)]
    case: CaseInfo,
    complete: bool,
    /// Manifests had none once.
    state: Option<String>,
    outputs: Vec<OutputSummary>,
    // None of these were there in the first manifests.
    #[serde(default)]
    volume_id: String,
    #[serde(default)]
    made_ns: i64,
    #[serde(default)]
    pieces: Vec<PieceOf>,
    request: Option<RequestRead>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RequestRead {
    OfVolume(OfVolume),
    /// What many sensors were asked for: names with their values.
    OfSensors(#[expect(dead_code, reason = "tells the form alone")] Vec<IgnoredAny>),
}

#[derive(Default, Deserialize)]
struct OfVolume {
    #[serde(default)]
    is_raw: bool,
    escrow: Option<NamedEscrow>,
}

#[derive(Deserialize)]
struct PieceOf {
    sequence: Sequence,
    sub: u16,
    #[serde(default)]
    column: u8,
    cid: Option<Hash>,
    blake3: Option<Hash>,
}

impl PieceOf {
    fn named(self, is_raw: bool) -> NamedPiece {
        let Self { sequence, sub, column, cid, blake3 } = self;
        // Of other extracts it is the hash of the packets that were taken.
        let body = blake3.filter(|_| is_raw).map(|Hash(body)| body);
        let cid = cid.map(|Hash(cid)| cid);
        NamedPiece { stripe: StripeId { sequence, sub }, column, cid, body }
    }
}

#[derive(Deserialize)]
struct Hash(#[serde(with = "hex_digits")] [u8; 32]);

/// A manifest, as far as it says what has to be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadManifest<'a> {
    /// What it was made for.
    pub case: CaseInfo,
    /// The files.
    pub outputs: Vec<OutputSummary>,
    /// The volume that it was made from, where the manifest says it.
    pub volume: Option<VolumeId>,
    /// When it was made, as it says.
    pub made: Timestamp,
    /// Pieces that packets were taken from.
    pub pieces: Vec<NamedPiece>,
    /// It is of a raw extract: packets are encrypted in it.
    pub is_raw: bool,
    /// What leads back from other addresses, if there is such a file.
    pub escrow: Option<NamedEscrow>,
    /// What was said of them: complete, incomplete or unknown.
    pub state: &'static str,
    /// The text that is sealed, and its seal; `None` in manifests of version 1.
    pub sealed: Option<(&'a str, Seal)>,
}

impl ReadManifest<'_> {
    /// Packets in all its files.
    pub fn packets(&self) -> u64 {
        self.outputs.iter().map(|output| output.packets).sum()
    }
}

/// Reads a manifest; whether its seal is right is not looked at.
pub fn parse_manifest(text: &str) -> Result<ReadManifest<'_>, ManifestError> {
    let manifest: ManifestRead = serde_json::from_str(text).map_err(ManifestError::Json)?;
    let sealed = match manifest.version {
        1 => None,
        MANIFEST_VERSION => Some(split_sealed(text).map_err(ManifestError::Seal)?),
        other => return Err(ManifestError::Version(other)),
    };
    let state = match manifest.state.as_deref() {
        Some("unknown") => State::Unknown,
        _ if manifest.complete => State::Complete,
        _ => State::Incomplete,
    };
    let OfVolume { is_raw, escrow } = match manifest.request {
        Some(RequestRead::OfVolume(request)) => request,
        Some(RequestRead::OfSensors(_)) | None => OfVolume::default(),
    };
    let pieces = manifest.pieces.into_iter().map(|piece| piece.named(is_raw)).collect();
    let volume = unhex(&manifest.volume_id).map(VolumeId);
    let made = Timestamp(manifest.made_ns);
    let ManifestRead { case, outputs, .. } = manifest;
    let state = state.name();
    Ok(ReadManifest { case, outputs, volume, made, pieces, is_raw, escrow, state, sealed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let of =
            |version| format!("{{\"version\": {version}, \"complete\": true, \"outputs\": []}}");
        assert!(matches!(parse_manifest(&of(3)), Err(ManifestError::Version(3))));
        assert!(matches!(parse_manifest(&of(2)), Err(ManifestError::Seal(_))));
        assert!(parse_manifest(&of(1)).is_ok_and(|manifest| manifest.sealed.is_none()));
        assert!(matches!(parse_manifest("{}"), Err(ManifestError::Json(_))));
    }
}
