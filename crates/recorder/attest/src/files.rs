//! Keys to sign with, whom to trust, and files beside others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use evidence::{
    AskPassphrase, Attested, Authorities, SIGNATURE_SUFFIX, STAMP_SUFFIX, Seal, SigningKey, Trust,
    TrustedKeys, Vouched,
};
use host::Target;
use units::Timestamp;

use crate::Error;

/// Manifests of large extracts list many pieces, but not gigabytes of them.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;
/// Signatures and time stamps.
const BESIDE_BYTES_MAX: u64 = 1 << 24;

/// A path with something behind its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    // A folder may be named with a slash at its end.
    let mut name = OsString::from(path.components().as_path());
    name.push(suffix);
    name.into()
}

/// Keys and certificates of authorities that are trusted, from their files.
///
/// # Errors
/// When a file cannot be read or holds none.
pub fn read_trust(keys: Option<&Path>, authorities: Option<&Path>) -> Result<Trust, Error> {
    let mut trust = Trust::default();
    if let Some(path) = keys {
        let refused = |reason| Error::Key { path: path.to_path_buf(), reason };
        trust.keys = TrustedKeys::parse(&host::read_input(path)?).map_err(refused)?;
    }
    if let Some(path) = authorities {
        let refused = |reason| Error::Authorities { path: path.to_path_buf(), reason };
        trust.authorities = Authorities::parse(&host::read_input(path)?).map_err(refused)?;
    }
    Ok(trust)
}

/// A key that signs. `ask` is asked for its passphrase.
///
/// # Errors
/// When the file cannot be read, others can read it, or it holds none.
pub fn signing_key(path: &Path, ask: AskPassphrase<'_>) -> Result<SigningKey, Error> {
    let refused = |reason| Error::Key { path: path.to_path_buf(), reason };
    SigningKey::read(&host::read_key(path)?, ask).map_err(refused)
}

/// A file beside another one, if it is there.
pub(crate) fn beside(path: &Path, suffix: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = with_suffix(path, suffix);
    if host::target(&path)? == Target::Absent {
        return Ok(None);
    }
    Ok(Some(host::read_input_bytes(&path, BESIDE_BYTES_MAX)?))
}

/// The same of a text. What is none fits nothing.
pub(crate) fn text_beside(path: &Path, suffix: &str) -> Result<Option<String>, Error> {
    let bytes = beside(path, suffix)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Who vouches for a text, with what lies beside its file.
pub(crate) fn attested(
    path: &Path,
    text: &str,
    (sealed, made): (Option<(&str, &Seal)>, Timestamp),
    trust: &Trust,
) -> Result<Attested, Error> {
    let signature = text_beside(path, SIGNATURE_SUFFIX)?;
    let stamp = beside(path, STAMP_SUFFIX)?;
    let (signature, stamp) = (signature.as_deref(), stamp.as_deref());
    Ok(Attested::check(&Vouched { text, sealed, made, signature, stamp }, trust))
}

/// Refuses a file that exists.
pub(crate) fn check_absent(path: &Path, force: bool) -> Result<(), Error> {
    if !force && matches!(host::target(path)?, Target::File { .. }) {
        return Err(Error::Exists { path: path.to_path_buf() });
    }
    Ok(())
}
