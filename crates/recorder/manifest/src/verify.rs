//! Whether a file is the extract of a manifest.

use std::io::{self, Read};

use evidence::OutputSummary;
use evidence::{Hasher, Hashes};

/// A file is not the extract of the manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyExtractError {
    /// It could not be read.
    #[error("cannot read the extract: {0}")]
    Read(#[from] io::Error),
    /// Another length.
    #[error("the extract has {actual} bytes, its manifest says {expected}")]
    Length {
        /// Bytes in the manifest.
        expected: u64,
        /// Bytes read.
        actual: u64,
    },
    /// Other bytes, by SHA-256.
    #[error("the extract does not match the SHA-256 of its manifest")]
    Sha256,
    /// Other bytes, by BLAKE3.
    #[error("the extract does not match the BLAKE3 hash of its manifest")]
    Blake3,
}

/// Reads an extract to its end and compares it with what its manifest says of it.
pub fn verify_extract(
    expected: &OutputSummary,
    file: &mut dyn Read,
) -> Result<(), VerifyExtractError> {
    let mut hasher = Hasher::default();
    let actual = hasher.read_to_end(file)?;
    if actual != expected.bytes {
        return Err(VerifyExtractError::Length { expected: expected.bytes, actual });
    }
    let Hashes { sha256, blake3 } = hasher.finish();
    if sha256 != expected.sha256 {
        return Err(VerifyExtractError::Sha256);
    }
    if blake3 != expected.blake3 {
        return Err(VerifyExtractError::Blake3);
    }
    Ok(())
}
