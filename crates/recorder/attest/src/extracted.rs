//! An extract compared with its manifest, and with all that vouches for it.

use std::path::{Path, PathBuf};

use evidence::{Attested, OutputSummary, SIGNATURE_SUFFIX, STAMP_SUFFIX, Trust, Vouched};
use host::SystemClock;
use manifest::{ReadManifest, parse_manifest};
use session_view::CheckedExtract;
use units::Clock as _;

use crate::Error;
use crate::anchoring::cover;
use crate::files::{beside, text_beside};

/// Manifests of large extracts list many pieces, but not gigabytes of them.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// An extract to be checked.
#[derive(Clone, Copy, Debug)]
pub struct ExtractToCheck<'a> {
    /// Its manifest.
    pub manifest: &'a Path,
    /// The file, or the folder of one with a file for each session.
    pub file: &'a Path,
    /// Anchors that have to list its stripes.
    pub anchors: &'a [PathBuf],
    /// Whom to trust.
    pub trust: &'a Trust,
    /// Name and version of the program, for a report.
    pub program: &'a str,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtractChecked {
    /// A line each, safe to be shown.
    pub lines: Vec<String>,
    /// Nothing is wrong.
    pub is_right: bool,
    /// The report for people, a page of HTML.
    pub report: String,
}

/// Checks an extract.
///
/// # Errors
/// When a file cannot be read, or is no manifest or anchor.
pub fn check_extract(of: &ExtractToCheck<'_>) -> Result<ExtractChecked, Error> {
    let text = String::from_utf8(host::read_input_bytes(of.manifest, MANIFEST_BYTES_MAX)?)
        .map_err(|_| Error::NoText { path: of.manifest.to_path_buf() })?;
    let refused = |source| Error::Manifest { path: of.manifest.to_path_buf(), source };
    let manifest = parse_manifest(&text).map_err(refused)?;
    let attested = attest(of.manifest, (&text, &manifest), of.trust)?;
    let mut is_right = attested.is_right();
    let mut lines = session_view::attested(&page::safe::path(of.manifest), &attested);
    let case = manifest.case.lines();
    lines.extend(case.map(|(name, text)| format!("{name}: {}", page::safe::printable(text))));
    let findings = if of.file.is_dir() {
        session_view::unlike_folder(&manifest.outputs, of.file)?
    } else {
        let output = choose(&manifest.outputs, of.file)?;
        Vec::from_iter(session_view::unlike_file(output, of.file)?)
    };
    is_right &= findings.is_empty();
    if findings.is_empty() {
        let (file, state) = (page::safe::path(of.file), manifest.state);
        lines.push(format!("{file} is the extract of its manifest, {state}"));
    }
    lines.extend(findings.iter().cloned());
    let mut anchors = Vec::new();
    for path in of.anchors {
        let found = cover(path, &manifest, of.trust)?;
        is_right &= found.is_right;
        lines.extend(found.attested.iter().cloned());
        lines.push(session_view::covered(&found.name, found.coverage.as_ref()));
        anchors.push(found);
    }
    let checked = CheckedExtract {
        name: &of.manifest.file_name().unwrap_or_default().to_string_lossy(),
        text: &text,
        attested: &attested,
        findings: &findings,
        anchors: &anchors,
        is_right,
        checked: SystemClock.realtime(),
        program: of.program,
    };
    let report = session_view::extract_report(&checked).unwrap_or_default();
    Ok(ExtractChecked { lines, is_right, report })
}

/// Who vouches for a manifest.
fn attest(
    path: &Path,
    (text, manifest): (&str, &ReadManifest<'_>),
    trust: &Trust,
) -> Result<Attested, Error> {
    let signature = text_beside(path, SIGNATURE_SUFFIX)?;
    let stamp = beside(path, STAMP_SUFFIX)?;
    let of = Vouched {
        text,
        sealed: manifest.sealed.as_ref().map(|(text, seal)| (*text, seal)),
        made: manifest.made,
        signature: signature.as_deref(),
        stamp: stamp.as_deref(),
    };
    Ok(Attested::check(&of, trust))
}

/// The only output, or the one with the name of the file.
fn choose<'a>(outputs: &'a [OutputSummary], file: &Path) -> Result<&'a OutputSummary, Error> {
    if let [only] = outputs {
        return Ok(only);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let named = outputs.iter().find(|output| output.file.as_deref() == Some(&*name));
    named.ok_or_else(|| Error::NoOutput { name: page::safe::printable(&name) })
}
