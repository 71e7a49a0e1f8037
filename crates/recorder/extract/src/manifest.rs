//! The form of a manifest as text, and reading it: what is compared with the files that it is of.

use serde::{Deserialize, Serialize};
use units::{hex, unhex};

use crate::completeness::State;
use crate::evidence::{PublicKey, Seal};
use crate::output::OutputSummary;

/// Of the manifests that are written. Version 1 had no seal.
pub const MANIFEST_VERSION: u16 = 2;
/// What stands between a manifest and its seal.
pub const BEFORE_SEAL: &str = ",\n  \"seal\": ";
/// What stands behind the seal.
pub const AFTER_SEAL: &str = "\n}\n";

/// A seal as a manifest has it: bytes in hex digits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SealForm {
    blake3: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ed25519: Option<SignatureForm>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct SignatureForm {
    public_key: String,
    signature: String,
}

impl SealForm {
    /// Of this seal.
    pub fn new(seal: &Seal) -> Self {
        let signature = |(key, signature): (PublicKey, [u8; 64])| SignatureForm {
            public_key: hex(&key.0),
            signature: hex(&signature),
        };
        Self { blake3: hex(&seal.blake3), ed25519: seal.signature.map(signature) }
    }

    fn read(&self) -> Option<Seal> {
        let signature = match &self.ed25519 {
            Some(SignatureForm { public_key, signature }) => {
                Some((PublicKey(unhex(public_key)?), unhex(signature)?))
            }
            None => None,
        };
        Some(Seal { blake3: unhex(&self.blake3)?, signature })
    }
}

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
    /// No seal at its end.
    NoSeal,
}

impl core::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a manifest of an extract: {error}"),
            Self::Version(version) => {
                write!(f, "the manifest has version {version}, known are 1 and {MANIFEST_VERSION}")
            }
            Self::NoSeal => f.write_str("the manifest has no seal at its end"),
            Self::Hash => f.write_str(
                "the manifest has a hash, key or signature that is not hex digits, so many of them",
            ),
        }
    }
}

impl core::error::Error for ManifestError {}

#[derive(Deserialize)]
struct ManifestRead {
    version: u16,
    complete: bool,
    /// Manifests had none once.
    state: Option<String>,
    outputs: Vec<OutputForm>,
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
    /// The files.
    pub outputs: Vec<ExpectedOutput>,
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
        MANIFEST_VERSION => Some(parse_seal(text)?),
        other => return Err(ManifestError::Version(other)),
    };
    let read = |output: OutputForm| output.read().ok_or(ManifestError::Hash);
    let outputs = manifest.outputs.into_iter().map(read).collect::<Result<_, _>>()?;
    let state = match manifest.state.as_deref() {
        Some("unknown") => State::Unknown,
        _ if manifest.complete => State::Complete,
        _ => State::Incomplete,
    };
    Ok(ReadManifest { outputs, state: state.name(), sealed })
}

/// The text in front of the seal, and the seal.
fn parse_seal(text: &str) -> Result<(&str, Seal), ManifestError> {
    let parts = text.rsplit_once(BEFORE_SEAL);
    let parts = parts.and_then(|(body, seal)| Some((body, seal.strip_suffix(AFTER_SEAL)?)));
    let (body, seal) = parts.ok_or(ManifestError::NoSeal)?;
    let seal: SealForm = serde_json::from_str(seal).map_err(ManifestError::Json)?;
    Ok((body, seal.read().ok_or(ManifestError::Hash)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let of =
            |version| format!("{{\"version\": {version}, \"complete\": true, \"outputs\": []}}");
        assert!(matches!(parse_manifest(&of(3)), Err(ManifestError::Version(3))));
        assert!(matches!(parse_manifest(&of(2)), Err(ManifestError::NoSeal)));
        assert!(parse_manifest(&of(1)).is_ok_and(|manifest| manifest.sealed.is_none()));
        assert!(matches!(parse_manifest("{}"), Err(ManifestError::Json(_))));
    }
}
