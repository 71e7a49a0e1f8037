//! The manifest of an extract as JSON, written and read.

use extract::{Completeness, DamageKind, Manifest, OutputSummary};
use format::directory::Gap;
use serde::{Deserialize, Serialize};
use units::Timestamp;

use crate::pretty;

const VERSION: u16 = 1;

#[derive(Serialize)]
struct ManifestJson<'a> {
    version: u16,
    query: &'a str,
    volume_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
    rows: u64,
    complete: bool,
    completeness: CompletenessJson,
    outputs: Vec<OutputJson>,
    pieces: Vec<PieceJson>,
}

#[derive(Serialize)]
struct CompletenessJson {
    gaps: Vec<GapJson>,
    damage: Vec<DamageJson>,
    retired_pieces: u64,
    missing_packets: u64,
    unindexed_packets: u64,
    unread_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_through_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_through_ns: Option<i64>,
    limited: bool,
    stopped: bool,
}

#[derive(Serialize)]
struct GapJson {
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    from_ns: i64,
    to_ns: i64,
}

#[derive(Serialize)]
struct DamageJson {
    stripe: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed_from: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct OutputJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    packets: u64,
    bytes: u64,
    sha256: String,
    blake3: String,
}

#[derive(Serialize)]
struct PieceJson {
    sequence: u64,
    sub: u16,
    column: u8,
    crc64: String,
}

/// The manifest as JSON; `files` are the names of its outputs, in their order.
pub fn manifest_json(manifest: &Manifest, files: &[String]) -> String {
    let names = files.iter().cloned().map(Some).chain(core::iter::repeat(None));
    let outputs = manifest.outputs.iter().zip(names).map(|(output, file)| OutputJson {
        file,
        packets: output.packets,
        bytes: output.bytes,
        sha256: hex(&output.sha256),
        blake3: hex(&output.blake3),
    });
    let pieces = manifest.pieces.iter().map(|read| PieceJson {
        sequence: read.piece.sequence,
        sub: read.piece.sub,
        column: read.piece.column,
        crc64: format!("{:016x}", read.body_crc),
    });
    pretty(&ManifestJson {
        version: VERSION,
        query: &manifest.query,
        volume_id: manifest.volume.to_string(),
        from_ns: (manifest.from > Timestamp::MIN).then_some(manifest.from.0),
        to_ns: (manifest.to < Timestamp::MAX).then_some(manifest.to.0),
        rows: manifest.rows,
        complete: manifest.completeness.is_complete(),
        completeness: completeness(&manifest.completeness),
        outputs: outputs.collect(),
        pieces: pieces.collect(),
    })
}

fn completeness(found: &Completeness) -> CompletenessJson {
    let gap = |gap: &Gap| GapJson {
        cause: gap.cause.name(),
        interface: gap.interface,
        packets: gap.packets,
        bytes: gap.bytes,
        from_ns: gap.from.0,
        to_ns: gap.to.0,
    };
    let damage = found.damage.iter().map(|damage| {
        let (rows, malformed_from) = match &damage.kind {
            DamageKind::Missing => (Vec::new(), None),
            DamageKind::Rows(rows) => (rows.clone(), None),
            DamageKind::Malformed(offset) => (Vec::new(), Some(*offset)),
        };
        DamageJson { stripe: damage.stripe.to_string(), rows, malformed_from }
    });
    CompletenessJson {
        gaps: found.gaps.iter().map(gap).collect(),
        damage: damage.collect(),
        retired_pieces: found.retired_pieces,
        missing_packets: found.missing_packets,
        unindexed_packets: found.unindexed_packets,
        unread_packets: found.unread_packets,
        expired_through_ns: found.expired_through.map(|Timestamp(ns)| ns),
        erased_through_ns: found.erased_through.map(|Timestamp(ns)| ns),
        limited: found.limited,
        stopped: found.stopped,
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
}

impl core::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a manifest of an extract: {error}"),
            Self::Version(version) => {
                write!(f, "manifest has version {version}, known is {VERSION}")
            }
            Self::Hash => f.write_str("manifest has a hash that is not 64 hex digits"),
        }
    }
}

impl core::error::Error for ManifestError {}

#[derive(Deserialize)]
struct ManifestRead {
    version: u16,
    outputs: Vec<OutputJson>,
}

/// An output as a manifest tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedOutput {
    /// Name of its file; none when it went to a pipe.
    pub file: Option<String>,
    /// What it has to be.
    pub summary: OutputSummary,
}

/// The outputs of a manifest.
pub fn parse_manifest(text: &str) -> Result<Vec<ExpectedOutput>, ManifestError> {
    let manifest: ManifestRead = serde_json::from_str(text).map_err(ManifestError::Json)?;
    if manifest.version != VERSION {
        return Err(ManifestError::Version(manifest.version));
    }
    let output = |output: OutputJson| {
        let summary = OutputSummary {
            link_type: None,
            packets: output.packets,
            bytes: output.bytes,
            sha256: unhex(&output.sha256).ok_or(ManifestError::Hash)?,
            blake3: unhex(&output.blake3).ok_or(ManifestError::Hash)?,
        };
        Ok(ExpectedOutput { file: output.file, summary })
    };
    manifest.outputs.into_iter().map(output).collect()
}

fn hex(bytes: &[u8; 32]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let [high, low] = pair.map(digit);
        *byte = high? << 4 | low?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_survive_their_text_and_nothing_else_is_one() {
        let hash: [u8; 32] = core::array::from_fn(|at| u8::try_from(at * 8).unwrap());
        assert_eq!(unhex(&hex(&hash)), Some(hash));
        for text in ["", "00", &"0".repeat(63), &"g".repeat(64), &"0".repeat(66)] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        let text = r#"{"version": 2, "outputs": []}"#;
        assert!(matches!(parse_manifest(text), Err(ManifestError::Version(2))));
        assert!(matches!(parse_manifest("{}"), Err(ManifestError::Json(_))));
    }
}
