//! The form of a manifest as text, and reading it: what is compared with the files that it is of.

use completeness::State;
use evidence::{CaseInfo, OutputSummary, Seal, SealTextError, split_sealed};
use format::head::{StripeId, VolumeId};
use serde::{Deserialize, Serialize};
use units::{Timestamp, hex, unhex};

/// Of the manifests that are written. Version 1 had no seal.
pub const MANIFEST_VERSION: u16 = 2;
/// An output as a manifest has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    packets: u64,
    bytes: u64,
    sha256: String,
    blake3: String,
}

impl OutputForm {
    /// Of an output that went into a file of this name, or into a pipe.
    pub fn new(file: Option<String>, output: &OutputSummary) -> Self {
        Self {
            file,
            packets: output.packets,
            bytes: output.bytes,
            sha256: hex(&output.sha256),
            blake3: hex(&output.blake3),
        }
    }

    fn read(self) -> Option<ExpectedOutput> {
        let summary = OutputSummary {
            link_type: None,
            packets: self.packets,
            bytes: self.bytes,
            sha256: unhex(&self.sha256)?,
            blake3: unhex(&self.blake3)?,
        };
        Some(ExpectedOutput { file: self.file, summary })
    }
}

/// The text is no manifest.
#[derive(Debug)]
pub enum ManifestError {
    /// Not JSON of this shape.
    Json(serde_json::Error),
    /// Of a later version.
    Version(u16),
    /// A hash of the wrong length or alphabet.
    Hash,
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
            Self::Hash => {
                f.write_str("the manifest has a hash that is not hex digits, so many of them")
            }
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
    outputs: Vec<OutputForm>,
    // None of these were there in the first manifests.
    #[serde(default)]
    volume_id: String,
    #[serde(default)]
    made_ns: i64,
    #[serde(default)]
    pieces: Vec<PieceForm>,
}

#[derive(Deserialize)]
struct PieceForm {
    sequence: u64,
    sub: u16,
    cid: Option<String>,
}

/// An output as a manifest tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedOutput {
    /// Name of its file; none when it went to a pipe.
    pub file: Option<String>,
    /// What it has to be.
    pub summary: OutputSummary,
}

/// A manifest, as far as it says what has to be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadManifest<'a> {
    /// What it was made for.
    pub case: CaseInfo,
    /// The files.
    pub outputs: Vec<ExpectedOutput>,
    /// The volume that it was made from, where the manifest says it.
    pub volume: Option<VolumeId>,
    /// When it was made, as it says.
    pub made: Timestamp,
    /// Stripes that packets were taken from, one for each piece, with their identities where the
    /// manifest has them.
    pub stripes: Vec<(StripeId, Option<[u8; 32]>)>,
    /// What was said of them: complete, incomplete or unknown.
    pub state: &'static str,
    /// The text that is sealed, and its seal; `None` in manifests of version 1.
    pub sealed: Option<(&'a str, Seal)>,
}

/// Reads a manifest; whether its seal is right is not looked at.
pub fn parse_manifest(text: &str) -> Result<ReadManifest<'_>, ManifestError> {
    let manifest: ManifestRead = serde_json::from_str(text).map_err(ManifestError::Json)?;
    let sealed = match manifest.version {
        1 => None,
        MANIFEST_VERSION => Some(split_sealed(text).map_err(ManifestError::Seal)?),
        other => return Err(ManifestError::Version(other)),
    };
    let read = |output: OutputForm| output.read().ok_or(ManifestError::Hash);
    let outputs = manifest.outputs.into_iter().map(read).collect::<Result<_, _>>()?;
    let state = match manifest.state.as_deref() {
        Some("unknown") => State::Unknown,
        _ if manifest.complete => State::Complete,
        _ => State::Incomplete,
    };
    let stripe = |piece: PieceForm| {
        let PieceForm { sequence, sub, cid } = piece;
        let cid = cid.map(|cid| unhex(&cid).ok_or(ManifestError::Hash)).transpose()?;
        Ok((StripeId { sequence, sub }, cid))
    };
    let stripes = manifest.pieces.into_iter().map(stripe).collect::<Result<_, _>>()?;
    let volume = unhex(&manifest.volume_id).map(VolumeId);
    let made = Timestamp(manifest.made_ns);
    let case = manifest.case;
    Ok(ReadManifest { case, volume, made, stripes, outputs, state: state.name(), sealed })
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
