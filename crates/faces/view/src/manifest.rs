//! The manifest of an extract as JSON, written and read.

use extract::{
    Asked, Completeness, DamageKind, GivenUp, Manifest, OutputSummary, PublicKey, Seal, SigningKey,
    State, Stretch, StretchEnd, Times,
};
use format::directory::Gap;
use serde::{Deserialize, Serialize};
use units::Timestamp;

use crate::safe::{json_part, json_pretty};

/// Version 1 had no seal.
const VERSION: u16 = 2;
/// What stands between a manifest and its seal.
const BEFORE_SEAL: &str = ",\n  \"seal\": ";
/// What stands behind the seal.
const AFTER_SEAL: &str = "\n}\n";

/// Who made an extract, where and with what.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Maker {
    /// Name and version of the program.
    pub program: String,
    /// Name of the machine.
    pub host: String,
    /// The user that the program ran as.
    pub user: String,
    /// Who called it as that user, where sudo or pkexec say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
}

#[derive(Serialize)]
struct ManifestJson<'a> {
    version: u16,
    made_ns: i64,
    made_by: &'a Maker,
    query: &'a str,
    request: AskedJson<'a>,
    volume_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
    rows: u64,
    complete: bool,
    state: &'static str,
    completeness: CompletenessJson,
    outputs: Vec<OutputJson>,
    pieces: Vec<PieceJson>,
}

#[derive(Serialize)]
struct AskedJson<'a> {
    whole_sessions: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions_named: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    around_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    comments: bool,
    anonymised: bool,
}

#[derive(Serialize, Deserialize)]
struct SealJson {
    blake3: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ed25519: Option<SignatureJson>,
}

#[derive(Serialize, Deserialize)]
struct SignatureJson {
    public_key: String,
    signature: String,
}

#[derive(Serialize)]
struct CompletenessJson {
    gaps: Vec<GapJson>,
    damage: Vec<DamageJson>,
    retired_pieces: u64,
    missing_packets: u64,
    unindexed_packets: u64,
    left_out_packets: u64,
    unread_packets: u64,
    unfit_packets: u64,
    unknown_sessions: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    given_up: Vec<GivenUpJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_order: Option<DisorderJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_through_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_through_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<TimesJson>,
    limited: bool,
    stopped: bool,
    recorded: Vec<StretchJson>,
    not_recorded: Vec<TimesJson>,
    not_held: Vec<TimesJson>,
    not_known: Vec<DoubtJson>,
}

/// A member that was not read any more.
#[derive(Serialize)]
pub(crate) struct GivenUpJson {
    member: u8,
    failed_reads: u64,
    seconds: u64,
}

impl GivenUpJson {
    pub(crate) fn of_all(members: &[GivenUp]) -> Vec<Self> {
        let json = |&GivenUp { member, failed: failed_reads, seconds }: &GivenUp| Self {
            member,
            failed_reads,
            seconds,
        };
        members.iter().map(json).collect()
    }
}

/// Packets that stand behind later ones.
#[derive(Serialize)]
struct DisorderJson {
    packets: u64,
    most_ns: u64,
}

/// A stretch that was recorded.
#[derive(Serialize)]
struct StretchJson {
    from_ns: i64,
    to_ns: i64,
    source: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<String>,
    interface_count: u16,
    end: &'static str,
}

#[derive(Serialize)]
struct TimesJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
}

#[derive(Serialize)]
struct DoubtJson {
    why: &'static str,
    #[serde(flatten)]
    times: TimesJson,
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

/// The manifest as JSON; `files` are the names of its outputs, in their order. It ends with a seal,
/// signed if there is a key.
pub fn manifest_json(
    manifest: &Manifest,
    maker: &Maker,
    files: &[String],
    key: Option<&SigningKey>,
) -> String {
    let text = unsealed(manifest, maker, files);
    let body = text.strip_suffix(AFTER_SEAL).expect("an object ends with its brace");
    let seal = Seal::of(body.as_bytes(), key);
    let signature = |(key, signature): (PublicKey, [u8; 64])| SignatureJson {
        public_key: hex(&key.0),
        signature: hex(&signature),
    };
    let seal = SealJson { blake3: hex(&seal.blake3), ed25519: seal.signature.map(signature) };
    let seal = json_part(&seal);
    format!("{body}{BEFORE_SEAL}{seal}{AFTER_SEAL}")
}

fn unsealed(manifest: &Manifest, made_by: &Maker, files: &[String]) -> String {
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
    json_pretty(&ManifestJson {
        version: VERSION,
        made_ns: manifest.made.0,
        made_by,
        query: &manifest.query,
        request: asked(&manifest.asked),
        volume_id: manifest.volume.to_string(),
        from_ns: (manifest.from > Timestamp::MIN).then_some(manifest.from.0),
        to_ns: (manifest.to < Timestamp::MAX).then_some(manifest.to.0),
        rows: manifest.rows,
        complete: manifest.completeness.is_complete(),
        state: manifest.completeness.state().name(),
        completeness: completeness(&manifest.completeness),
        outputs: outputs.collect(),
        pieces: pieces.collect(),
    })
}

fn asked(asked: &Asked) -> AskedJson<'_> {
    AskedJson {
        whole_sessions: asked.whole_sessions,
        sessions_named: asked.sessions_named,
        around_ns: asked.around_ns,
        packet_filter: asked.packet_filter.as_deref(),
        payload: asked.payload.as_deref(),
        limit: asked.limits.sessions,
        limit_packets: asked.limits.packets,
        limit_bytes: asked.limits.bytes,
        comments: asked.comments,
        anonymised: asked.anonymised,
    }
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
    let doubts = found
        .doubts
        .iter()
        .flat_map(|(doubt, of)| times(of).map(|times| DoubtJson { why: doubt.name(), times }));
    CompletenessJson {
        gaps: found.gaps.iter().map(gap).collect(),
        damage: damage.collect(),
        retired_pieces: found.retired_pieces,
        missing_packets: found.missing_packets,
        unindexed_packets: found.unindexed_packets,
        left_out_packets: found.left_out_packets,
        unread_packets: found.unread_packets,
        unfit_packets: found.unfit_packets,
        unknown_sessions: found.unknown_sessions,
        out_of_order: (found.disorder.packets > 0).then_some(DisorderJson {
            packets: found.disorder.packets,
            most_ns: found.disorder.most_ns,
        }),
        expired_through_ns: found.expired_through.map(|Timestamp(ns)| ns),
        erased_through_ns: found.erased_through.map(|Timestamp(ns)| ns),
        withheld: found
            .withheld
            .map(|(from, to)| TimesJson { from_ns: Some(from.0), to_ns: Some(to.0) }),
        given_up: GivenUpJson::of_all(&found.given_up),
        limited: found.limited,
        stopped: found.stopped,
        recorded: found.recorded.iter().map(stretch).collect(),
        not_recorded: times(&found.unrecorded).collect(),
        not_held: times(&found.overwritten).collect(),
        not_known: doubts.collect(),
    }
}

fn stretch(stretch: &Stretch) -> StretchJson {
    StretchJson {
        from_ns: stretch.from.0,
        to_ns: stretch.through.0,
        source: if stretch.is_live { "interfaces" } else { "files" },
        interfaces: stretch.interfaces.clone(),
        interface_count: stretch.interface_count,
        end: match stretch.end {
            StretchEnd::InOrder => "in_order",
            StretchEnd::ClockSet => "clock_set",
            StretchEnd::Crash => "crash",
            StretchEnd::Going => "going",
        },
    }
}

/// A bound that is none is left out.
fn times(times: &Times) -> impl Iterator<Item = TimesJson> {
    times.iter().map(|(from, to)| TimesJson {
        from_ns: (from > Timestamp::MIN).then_some(from.0),
        to_ns: (to < Timestamp::MAX).then_some(to.0),
    })
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
                write!(f, "the manifest has version {version}, known are 1 and {VERSION}")
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
    outputs: Vec<OutputJson>,
}

/// An output as a manifest describes it.
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
    /// Files of the extract, as the manifest lists them.
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
        VERSION => Some(parse_seal(text)?),
        other => return Err(ManifestError::Version(other)),
    };
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
    let outputs = manifest.outputs.into_iter().map(output).collect::<Result<_, _>>()?;
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
    let SealJson { blake3, ed25519 } = serde_json::from_str(seal).map_err(ManifestError::Json)?;
    let signature = |SignatureJson { public_key, signature }| {
        Some((PublicKey(unhex(&public_key)?), unhex(&signature)?))
    };
    let signature = ed25519.map(|it| signature(it).ok_or(ManifestError::Hash)).transpose()?;
    Ok((body, Seal { blake3: unhex(&blake3).ok_or(ManifestError::Hash)?, signature }))
}

/// Bytes in hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).expect("a nibble is below 16");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
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
            assert_eq!(unhex::<32>(text), None, "{text}");
        }
    }

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
