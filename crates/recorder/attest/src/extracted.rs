//! An extract compared with its manifest, and with all that vouches for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use evidence::{NamedPiece, OutputSummary, Trust};
use format::head::StripeId;
use format::session_row::PieceId;
use host::{StopFlag, SystemClock, TemporaryDirectory};
use manifest::{ManifestError, PieceRead, ReadManifest, parse_manifest};
use raw::Restored;
use session_view::CheckedExtract;
use units::Clock as _;

use crate::Error;
use crate::anchoring::cover;
use crate::escrow::unlike_escrow;
use crate::files::{MANIFEST_BYTES_MAX, attested};

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
    /// The report for people, a page of HTML; there is none of a manifest that cannot be read.
    pub report: Option<String>,
}

/// Checks an extract.
///
/// # Errors
/// When a file cannot be read, or is no anchor, or the manifest is of a later version.
pub fn check_extract(of: &ExtractToCheck<'_>) -> Result<ExtractChecked, Error> {
    let text = String::from_utf8(host::read_input_bytes(of.manifest, MANIFEST_BYTES_MAX)?)
        .map_err(|_| Error::NoText { path: of.manifest.to_path_buf() })?;
    let manifest = match parse_manifest(&text) {
        Ok(manifest) => manifest,
        Err(source @ ManifestError::Version(_)) => {
            return Err(Error::Manifest { path: of.manifest.to_path_buf(), source });
        }
        // Cut off, or changed so that it is none.
        Err(error) => {
            let name = page::safe::path(of.manifest);
            let lines = vec![page::safe::printable(&format!("{name}: {error}"))];
            return Ok(ExtractChecked { lines, is_right: false, report: None });
        }
    };
    let sealed = manifest.sealed.as_ref().map(|(text, seal)| (*text, seal));
    let attested = attested(of.manifest, &text, (sealed, manifest.made), of.trust)?;
    let mut is_right = attested.is_right();
    let mut lines = session_view::attested(&page::safe::path(of.manifest), &attested);
    let case = manifest.case.lines();
    lines.extend(case.map(|(name, text)| format!("{name}: {}", page::safe::printable(text))));
    let mut findings = if of.file.is_dir() {
        session_view::unlike_folder(&manifest.outputs, of.file)?
    } else {
        let output = choose(&manifest.outputs, of.file)?;
        let mut findings = Vec::from_iter(session_view::unlike_file(output, of.file)?);
        if manifest.is_raw && findings.is_empty() && !of.anchors.is_empty() {
            findings.extend(unlike_pieces(&manifest, of.file)?);
        }
        findings
    };
    if let Some(named) = &manifest.escrow {
        findings.extend(unlike_escrow(named, of.file)?);
    }
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
    let report = session_view::extract_report(&checked);
    Ok(ExtractChecked { lines, is_right, report })
}

/// What a raw extract holds other than its manifest lists: anchors are compared with the list.
fn unlike_pieces(manifest: &ReadManifest<'_>, file: &Path) -> Result<Option<String>, Error> {
    let failed = |source| Error::Raw { path: file.to_path_buf(), source };
    let stop = StopFlag::install()?;
    let folder = TemporaryDirectory::new("wirespool-verify-")?;
    let restored = raw::restore(&mut host::open_input(file)?, folder.path(), &mut |_| stop.flow());
    let pieces = restored.and_then(|it: Restored| it.pieces(&mut |_, _| stop.flow()));
    let held: BTreeSet<NamedPiece> = pieces.map_err(failed)?.iter().map(named).collect();
    let listed: BTreeSet<NamedPiece> = manifest.pieces.iter().copied().collect();
    let [more, fewer] = [(&held, &listed), (&listed, &held)].map(|(these, those)| {
        page::text::plural(units::number::to_u64(these.difference(those).count()), "piece")
    });
    let name = page::safe::path(file);
    Ok((held != listed).then(|| {
        format!("{name} holds {more} that its manifest does not list, and lacks {fewer} of it")
    }))
}

/// As its manifest names it.
fn named(piece: &PieceRead) -> NamedPiece {
    let PieceRead { piece: PieceId { sequence, sub, column }, cid, blake3, .. } = *piece;
    NamedPiece { stripe: StripeId { sequence, sub }, column, cid: Some(cid), body: Some(blake3) }
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
