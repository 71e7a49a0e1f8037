//! Keys to sign with, whom to trust, and files beside others.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use ::evidence::{Authorities, KeyError, SigningKey, Trust, TrustedKeys};
use anyhow::Context;
use clap::Args;
use host::Target;

use crate::failure::Usage;
use crate::statement::with_suffix;

/// Signatures, time stamps, certificates and public keys.
const BESIDE_BYTES_MAX: u64 = 1 << 24;

/// Whom to trust.
#[derive(Debug, Args)]
pub(crate) struct TrustFlags {
    /// It has to be signed with the other half of a key in this file: PEM, KEY.pub of OpenSSH, or
    /// allowed_signers
    #[arg(long, value_name = "FILE")]
    public_key: Option<PathBuf>,
    /// Time stamps have to be of an authority whose certificate leads to one in this file (PEM)
    #[arg(long, value_name = "FILE")]
    tsa_ca: Option<PathBuf>,
}

impl TrustFlags {
    pub(crate) fn read(&self) -> anyhow::Result<Trust> {
        let mut trust = Trust::default();
        if let Some(path) = &self.public_key {
            let keys = TrustedKeys::parse(&host::read_text(path)?);
            trust.keys = keys.map_err(|error| not_a_key(path, &error))?;
        }
        if let Some(path) = &self.tsa_ca {
            let authorities = Authorities::parse(&host::read_text(path)?);
            let refused = |error| Usage(format!("{}: {error}", page::safe::path(path)));
            trust.authorities = authorities.map_err(refused)?;
        }
        Ok(trust)
    }
}

/// Reads a key that signs; the terminal is asked for a passphrase.
pub(crate) fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    let text = host::read_key(path)?;
    let name = page::safe::path(path);
    let mut ask = || host::ask_passphrase(&format!("Passphrase of {name}: "));
    SigningKey::read(&text, &mut ask).map_err(|error| not_a_key(path, &error))
}

fn not_a_key(path: &Path, error: &KeyError) -> anyhow::Error {
    let error = page::safe::printable(&error.to_string());
    Usage(format!("{}: {error}", page::safe::path(path))).into()
}

/// A file beside another one, if it is there.
pub(crate) fn beside(path: &Path, suffix: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let path = with_suffix(path, suffix);
    if host::target(&path)? == Target::Absent {
        return Ok(None);
    }
    read_bytes(&path, BESIDE_BYTES_MAX).map(Some)
}

/// A file that may have so many bytes; what is behind them is left out.
pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = host::open_input(path)?.take(bytes_max);
    let name = || format!("cannot read {}", page::safe::path(path));
    { file }.read_to_end(&mut bytes).with_context(name)?;
    Ok(bytes)
}
