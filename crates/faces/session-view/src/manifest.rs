//! The manifest of an extract as JSON.

use completeness::{Completeness, DamageKind, Disorder, Stretch, StretchEnd};
use evidence::{
    AFTER_SEAL, AnchorForm, ApprovalForm, BEFORE_SEAL, ClockUse, Maker, ReceiptForm, RequestForm,
    Seal, SealForm, SigningKey, TimesBy, WitnessForm,
};
use extract::{GivenUp, Times};
use manifest::{Asked, CaseInfo, Manifest, parse_manifest};
use manifest::{MANIFEST_VERSION, OutputForm};
use page::safe::{json_line, json_part, json_pretty};
use serde::Serialize;
use units::{Timestamp, hex};

use crate::gaps::GapJson;

#[derive(Serialize)]
struct ManifestJson<'a> {
    version: u16,
    made_ns: i64,
    made_by: &'a Maker,
    #[serde(flatten)]
    case: &'a CaseInfo,
    query: &'a str,
    request: &'a Asked,
    volume_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<i64>,
    rows: u64,
    complete: bool,
    state: &'static str,
    completeness: CompletenessJson<'a>,
    /// The same for people, a line each.
    statement: Vec<String>,
    outputs: Vec<OutputForm>,
    clocks: Vec<ClockJson>,
    pieces: Vec<PieceJson>,
}

/// What recorders said of the clock in the heads of pieces.
#[derive(Serialize)]
struct ClockJson {
    epoch: u32,
    times_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    synchronised: Option<bool>,
    pieces: u64,
    #[serde(flatten)]
    times: TimesJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_error_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_error_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_between: Option<u16>,
}

#[derive(Serialize)]
struct CompletenessJson<'a> {
    gaps: Vec<GapJson>,
    damage: Vec<DamageJson>,
    retired_pieces: u64,
    missing_packets: u64,
    unindexed_packets: u64,
    left_out_packets: u64,
    unread_packets: u64,
    unfit_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets_left_out: Option<u64>,
    unknown_sessions: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    given_up: &'a [GivenUp],
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_order: Option<Disorder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_through_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_through_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<TimesJson>,
    limited: bool,
    unsought: bool,
    stopped: bool,
    recorded: Vec<StretchJson>,
    not_recorded: Vec<TimesJson>,
    not_held: Vec<TimesJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forgotten: Vec<TimesJson>,
    not_known: Vec<DoubtJson>,
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
struct DamageJson {
    stripe: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed_from: Option<usize>,
}

#[derive(Serialize)]
struct PieceJson {
    sequence: u64,
    sub: u16,
    column: u8,
    crc64: String,
    cid: String,
    packets: u64,
    blake3: String,
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
    sealed(body_of(&text), key)
}

/// The manifest of an extract that another program has made, with the name of the file that it
/// went into, sealed anew, and signed if there is a key. `None` where the text has not the form of
/// [`manifest_json`] with an output that has no name.
pub fn manifest_of(text: &str, file: Option<&str>, key: Option<&SigningKey>) -> Option<String> {
    let (body, _) = parse_manifest(text).ok()?.sealed?;
    let Some(file) = file else { return Some(sealed(body, key)) };
    // A text within it has no line feed: only a key stands so behind one.
    let (before, output) = body.split_once(FIRST_OUTPUT)?;
    let file = json_part(&file);
    Some(sealed(&format!("{before}{FIRST_OUTPUT}\n      \"file\": {file},{output}"), key))
}

/// Where the first output of a manifest begins.
const FIRST_OUTPUT: &str = "\n  \"outputs\": [\n    {";

/// A JSON object up to its end, where the seal comes.
fn body_of(text: &str) -> &str {
    text.strip_suffix(AFTER_SEAL).expect("an object ends with its brace")
}

/// The body of a JSON object with its seal, signed if there is a key.
fn sealed(body: &str, key: Option<&SigningKey>) -> String {
    let seal = Seal::of(body.as_bytes(), key);
    let seal = json_part(&SealForm::new(&seal));
    format!("{body}{BEFORE_SEAL}{seal}{AFTER_SEAL}")
}

/// Anything that is an object of JSON, ended by a seal, signed if there is a key.
pub fn sealed_json(form: &impl Serialize, key: Option<&SigningKey>) -> String {
    sealed(body_of(&json_pretty(form)), key)
}

/// An anchor as JSON. It ends with a seal, signed if there is a key.
pub fn anchor_json(anchor: &AnchorForm, key: Option<&SigningKey>) -> String {
    sealed_json(anchor, key)
}

/// The receipt of an erasure as JSON. It ends with a seal, signed if there is a key.
pub fn receipt_json(receipt: &ReceiptForm, key: Option<&SigningKey>) -> String {
    sealed_json(receipt, key)
}

/// A request for an extract as JSON, sealed and signed.
pub fn request_json(request: &RequestForm, key: Option<&SigningKey>) -> String {
    sealed_json(request, key)
}

/// The approval of a request as JSON, sealed and signed.
pub fn approval_json(approval: &ApprovalForm, key: Option<&SigningKey>) -> String {
    sealed_json(approval, key)
}

/// A line of a witness file.
pub fn witness_line(witness: &WitnessForm) -> String {
    json_line(witness)
}

fn unsealed(manifest: &Manifest, made_by: &Maker, files: &[String]) -> String {
    let names = files.iter().cloned().map(Some).chain(core::iter::repeat(None));
    let outputs = manifest.outputs.iter().zip(names);
    let outputs = outputs.map(|(output, file)| OutputForm::new(file, output));
    let pieces = manifest.pieces.iter().map(|read| PieceJson {
        sequence: read.piece.sequence,
        sub: read.piece.sub,
        column: read.piece.column,
        crc64: format!("{:016x}", read.body_crc),
        cid: hex(&read.cid),
        packets: read.packets,
        blake3: hex(&read.blake3),
    });
    let statement = manifest.completeness.to_string();
    json_pretty(&ManifestJson {
        version: MANIFEST_VERSION,
        made_ns: manifest.made.0,
        made_by,
        case: &manifest.case,
        query: &manifest.query,
        request: &manifest.asked,
        volume_id: manifest.volume.to_string(),
        from_ns: (manifest.from > Timestamp::MIN).then_some(manifest.from.0),
        to_ns: (manifest.to < Timestamp::MAX).then_some(manifest.to.0),
        rows: manifest.rows,
        complete: manifest.completeness.is_complete(),
        state: manifest.completeness.state().name(),
        completeness: completeness(&manifest.completeness),
        statement: statement.lines().map(str::to_owned).collect(),
        outputs: outputs.collect(),
        clocks: manifest.clocks.iter().map(clock).collect(),
        pieces: pieces.collect(),
    })
}

/// What is missing from an answer, as a part of another text of JSON: with the keys that a manifest
/// has under `completeness`.
pub fn completeness_json(found: &Completeness) -> String {
    json_part(&completeness(found))
}

fn completeness(found: &Completeness) -> CompletenessJson<'_> {
    let damage = found.damage.iter().map(|damage| {
        let (rows, malformed_from) = match &damage.kind {
            DamageKind::Missing | DamageKind::Locked => (Vec::new(), None),
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
        gaps: found.gaps.iter().map(GapJson::new).collect(),
        damage: damage.collect(),
        retired_pieces: found.retired_pieces,
        missing_packets: found.missing_packets,
        unindexed_packets: found.unindexed_packets,
        left_out_packets: found.left_out_packets,
        unread_packets: found.unread_packets,
        unfit_packets: found.unfit_packets,
        secrets_left_out: Some(found.secrets_left_out).filter(|count| *count > 0),
        unknown_sessions: found.unknown_sessions,
        out_of_order: (found.disorder.packets > 0).then_some(found.disorder),
        expired_through_ns: found.expired_through.map(|Timestamp(ns)| ns),
        erased_through_ns: found.erased_through.map(|Timestamp(ns)| ns),
        withheld: found
            .withheld
            .map(|(from, to)| TimesJson { from_ns: Some(from.0), to_ns: Some(to.0) }),
        given_up: &found.given_up,
        limited: found.limited,
        unsought: found.unsought,
        stopped: found.stopped,
        recorded: found.recorded.iter().map(stretch).collect(),
        not_recorded: times(&found.unrecorded).collect(),
        not_held: times(&found.overwritten).collect(),
        forgotten: times(&found.forgotten).collect(),
        not_known: doubts.collect(),
    }
}

fn clock(clock: &ClockUse) -> ClockJson {
    // Only a recorder that took packets itself has looked.
    let is_looked_at = !matches!(clock.times_by, TimesBy::Files | TimesBy::Unsaid);
    let steps = |steps| is_looked_at.then_some(steps);
    ClockJson {
        epoch: clock.epoch,
        times_by: clock.times_by.name(),
        synchronised: clock.is_synchronised,
        pieces: clock.pieces,
        times: TimesJson {
            from_ns: (clock.from <= clock.to).then_some(clock.from.0),
            to_ns: (clock.from <= clock.to).then_some(clock.to.0),
        },
        estimated_error_us: clock.estimated_error_us,
        largest_error_us: clock.largest_error_us,
        steps: steps(clock.steps),
        steps_between: steps(clock.steps_between),
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
