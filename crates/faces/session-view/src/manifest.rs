//! The manifest of an extract as JSON.

use completeness::Completeness;
use evidence::{
    AFTER_SEAL, AnchorForm, ApprovalForm, BEFORE_SEAL, Maker, ReceiptForm, RequestForm, Seal,
    SealForm, SigningKey, WitnessForm,
};
use manifest::{MANIFEST_VERSION, Manifest, parse_manifest};
use page::safe::{json_line, json_part, json_pretty};
use serde::Serialize;
use units::Timestamp;

/// A manifest, and when and by whom it was made.
#[derive(Serialize)]
struct Authored<'a, M> {
    version: u16,
    made_ns: i64,
    made_by: &'a Maker,
    #[serde(flatten)]
    manifest: &'a M,
}

/// A manifest of any form with when and by whom it was made, as JSON that ends with a seal, signed
/// if there is a key.
pub fn made_json(
    manifest: &impl Serialize,
    made: Timestamp,
    made_by: &Maker,
    key: Option<&SigningKey>,
) -> String {
    sealed_json(&Authored { version: MANIFEST_VERSION, made_ns: made.0, made_by, manifest }, key)
}

/// The manifest as JSON; `files` are the names of its outputs, in their order. It ends with a seal,
/// signed if there is a key.
pub fn manifest_json(
    manifest: &Manifest,
    maker: &Maker,
    files: &[String],
    key: Option<&SigningKey>,
) -> String {
    let mut named = manifest.clone();
    for (output, file) in named.outputs.iter_mut().zip(files) {
        output.file = Some(file.clone());
    }
    made_json(&named, manifest.made, maker, key)
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

/// What is missing from an answer, as a part of another text of JSON: with the keys that a manifest
/// has under `completeness`.
pub fn completeness_json(found: &Completeness) -> String {
    json_part(found)
}

#[cfg(test)]
mod tests;
