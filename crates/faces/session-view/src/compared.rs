//! An extract beside its manifest: who signed it, and what is not as it says.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use extract::{ExpectedOutput, PublicKey, ReadManifest, SealError, VerifyExtractError};

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

/// Who signed it, in words; `None` without a signature.
///
/// # Errors
/// When the manifest is not as it was sealed, or not signed with the key that is trusted.
pub fn signed_by(
    manifest: &ReadManifest<'_>,
    trusted: Option<&PublicKey>,
) -> Result<Option<String>, SealError> {
    let Some((text, seal)) = &manifest.sealed else {
        return trusted.map_or(Ok(None), |_| Err(SealError::Unsigned));
    };
    seal.check(text.as_bytes(), trusted)?;
    let known = if trusted.is_some() { "the key given" } else { "an unverified key" };
    Ok(seal.signature.map(|(key, _)| format!("{known}, {}", units::hex(&key.0))))
}

/// What is wrong with a file.
///
/// # Errors
/// When it cannot be read.
pub fn unlike_file(output: &ExpectedOutput, path: &Path) -> Result<Option<String>, NotCompared> {
    let mut file = host::open_input(path)?;
    match extract::verify_extract(&output.summary, &mut file) {
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
pub fn unlike_folder(
    outputs: &[ExpectedOutput],
    folder: &Path,
) -> Result<Vec<String>, NotCompared> {
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
