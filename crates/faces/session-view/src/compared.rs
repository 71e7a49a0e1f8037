//! An extract beside its manifest: who signed it, and what is not as it says.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use evidence::{
    Attested, Coverage, Maker, OutputSummary, ReceiptForm, SIGNATURE_SUFFIX, STAMP_SUFFIX, Signer,
    Stamp,
};
use manifest::VerifyExtractError;
use units::Timestamp;

/// Why an extract cannot be compared with its manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCompared {
    /// A file or folder cannot be opened.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A file cannot be read to its end.
    #[error("cannot read {}", page::safe::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The manifest is of a single file.
    #[error("the manifest names no files")]
    NoNames,
}

/// Who vouches for a manifest or an anchor, a line each. `name` is that of its file, and safe.
pub fn attested(name: &str, found: &Attested) -> Vec<String> {
    let mut lines = Vec::new();
    match &found.seal {
        Ok(Some(by)) => lines.push(format!("{name} is signed with {}", signer(by))),
        Ok(None) => {}
        Err(error) => lines.push(format!("{name}: {error}")),
    }
    lines.extend(found.signature.as_ref().map(|signature| match signature {
        Ok(by) => format!("{name}{SIGNATURE_SUFFIX}: a signature with {}", signer(by)),
        Err(error) => format!("{name}{SIGNATURE_SUFFIX}: {error}"),
    }));
    lines.extend(found.stamp.as_ref().map(|stamp| match stamp {
        Ok(stamp) => format!("{name}{STAMP_SUFFIX}: {}", stamped(stamp)),
        Err(error) => {
            format!("{name}{STAMP_SUFFIX}: {}", page::safe::printable(&error.to_string()))
        }
    }));
    lines.extend(found.distrust.map(|error| format!("{name}: {error}")));
    lines
}

/// A time stamp in words.
pub fn stamped(stamp: &Stamp) -> String {
    let Stamp { at, authority, is_trusted } = stamp;
    let authority = page::safe::printable(authority);
    let trust = if *is_trusted {
        "its certificate leads to an authority given"
    } else {
        "nobody vouches for its certificate: give --tsa-ca"
    };
    format!("time stamp of {at} by {authority}; {trust}")
}

/// An extract after an anchor, in words; `None` stands for two volumes, or a manifest without
/// identities of stripes.
pub fn covered(anchor: &str, found: Option<&Coverage>) -> String {
    let pieces = |count| page::text::plural(count, "piece");
    let Some(Coverage { covered, bodies, other, changed, unlisted, stamped }) = found else {
        return format!("{anchor} is of another volume, or the manifest names no stripes");
    };
    let listed = format!("{anchor} lists the stripes of {} of the extract", pieces(*covered));
    let bodies = (*bodies > 0).then(|| format!(", with the bodies of {}", pieces(*bodies)));
    let there = stamped.map(|at| format!(", which were there on {at} at the latest"));
    let unlisted = (*unlisted > 0).then(|| format!("; not those of {}", pieces(*unlisted)));
    let other = (*other > 0)
        .then(|| format!("; {} are of other stripes than the anchor saw", pieces(*other)));
    let changed = (*changed > 0)
        .then(|| format!("; the bodies of {} are not those that it saw", pieces(*changed)));
    [Some(listed), bodies, there, unlisted, other, changed].into_iter().flatten().collect()
}

/// A signer in words.
pub fn signer(signer: &Signer) -> String {
    let Signer { key, trusted } = signer;
    let key = format!("{} ({})", units::hex(&key.0), key.fingerprint());
    match trusted {
        None => format!("an unverified key, {key}"),
        Some(trusted) => match &trusted.name {
            Some(name) => format!("the key given of {}, {key}", page::safe::printable(name)),
            None => format!("the key given, {key}"),
        },
    }
}

/// What the receipt of an erasure says, a line each. `name` is that of its file, and safe.
pub fn receipt_lines(name: &str, of: &ReceiptForm) -> Vec<String> {
    use page::safe::printable;
    let Maker { program, host, user, .. } = &of.made_by;
    let (action, volume) = (printable(&of.action), printable(&of.volume_id));
    let (at, by) = (Timestamp(of.made_ns), printable(&format!("{user} on {host} with {program}")));
    let mut lines = vec![format!("{name} is the receipt of {action} of {volume} on {at} by {by}")];
    let texts = [("query", &of.query), ("reason", &of.reason)];
    let given = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    lines.extend(given.map(|(name, text)| format!("{name}: {}", printable(text))));
    let counts = [
        ("packets", of.packets),
        ("other packets", of.other_packets),
        ("rows of overwritten packets", of.kept_rows),
        ("other such rows", of.other_kept_rows),
        ("slots overwritten", Some(of.slots)),
        ("slots still to be overwritten", of.slots_left),
    ];
    let given = counts.into_iter().filter_map(|(name, count)| Some((name, count?)));
    lines.extend(given.map(|(name, count)| format!("{name}: {}", page::text::grouped(count))));
    if !of.keys.is_empty() {
        lines.push(format!("data keys destroyed: {}", of.keys.len()));
    }
    lines
}

/// What is wrong with a file.
///
/// # Errors
/// When it cannot be read.
pub fn unlike_file(output: &OutputSummary, path: &Path) -> Result<Option<String>, NotCompared> {
    let mut file = host::open_input(path)?;
    match manifest::verify_extract(output, &mut file) {
        Ok(()) => Ok(None),
        Err(VerifyExtractError::Read(source)) => {
            Err(NotCompared::Read { path: path.to_path_buf(), source })
        }
        Err(error) => Ok(Some(format!("{}: {error}", page::safe::path(path)))),
    }
}

/// What is wrong with a folder: files that are changed, missing, or too many.
///
/// # Errors
/// When it or a file cannot be read.
pub fn unlike_folder(outputs: &[OutputSummary], folder: &Path) -> Result<Vec<String>, NotCompared> {
    let mut there: BTreeSet<PathBuf> =
        host::files_in(folder)?.into_iter().map(|(path, _)| path).collect();
    let mut findings = Vec::new();
    for output in outputs {
        let name = output.file.as_ref().ok_or(NotCompared::NoNames)?;
        let path = folder.join(name);
        if there.remove(&path) {
            findings.extend(unlike_file(output, &path)?);
        } else {
            findings.push(format!("{}: missing", page::safe::path(&path)));
        }
    }
    let unknown =
        there.iter().map(|path| format!("{}: not of the extract", page::safe::path(path)));
    findings.extend(unknown);
    Ok(findings)
}
