//! The escrow: what leads back from other addresses.

use anonymise::Stations;
use encryption::{Identities, Recipients, WrapError};
use serde::{Deserialize, Serialize};
use units::{hex, unhex};
use zeroize::Zeroizing;

/// Version of the escrows that are written.
const VERSION: u16 = 1;
/// An escrow with as many stations as are remembered has a few MiB.
const BYTES_MAX: u64 = 64 << 20;

/// Why a file is no escrow that can be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EscrowError {
    /// No identity opens it, or it is no file of age.
    #[error("it is no escrow, or it is for others than the identities given")]
    Closed,
    /// It was opened, and holds something else.
    #[error("it is no escrow of wirespool: {0}")]
    Form(#[from] serde_json::Error),
    /// Of a later version.
    #[error("the escrow has version {0}, known is 1")]
    Version(u16),
    /// A key or an address of another length.
    #[error("the escrow has a key or an address that is none")]
    Hex,
    /// It cannot be encrypted to these.
    #[error(transparent)]
    Recipients(#[from] WrapError),
}

/// What leads back from the addresses of one extract.
#[derive(Clone)]
pub struct Escrow {
    /// The key of the addresses.
    pub key: Zeroizing<[u8; 32]>,
    /// Stations of the link layer that were met.
    pub stations: Stations,
    /// Name of the extract, as it was written.
    pub of: String,
    /// SHA-256 of the extract, in hex digits.
    pub sha256: String,
}

impl core::fmt::Debug for Escrow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Escrow({:?})", self.of)
    }
}

/// Fields are keys in JSON, in this order.
#[derive(Serialize, Deserialize)]
struct Form {
    escrow_version: u16,
    of: String,
    sha256: String,
    key: String,
    stations_left_out: u64,
    stations: Vec<[String; 2]>,
    groups: Vec<[String; 2]>,
}

fn pairs<const N: usize>(map: &std::collections::BTreeMap<[u8; N], [u8; N]>) -> Vec<[String; 2]> {
    map.iter().map(|(new, old)| [hex(new), hex(old)]).collect()
}

fn map<const N: usize>(
    pairs: Vec<[String; 2]>,
) -> Result<std::collections::BTreeMap<[u8; N], [u8; N]>, EscrowError> {
    let pair = |[new, old]: [String; 2]| Some((unhex(&new)?, unhex(&old)?));
    pairs.into_iter().map(|it| pair(it).ok_or(EscrowError::Hex)).collect()
}

impl Escrow {
    /// Which key it has, for those who may not have the key.
    pub fn key_id(&self) -> [u8; 16] {
        let hash = blake3::derive_key("wirespool: which key of addresses", &*self.key);
        *hash.first_chunk().expect("a hash is longer")
    }

    /// The escrow as a file of age for these recipients.
    ///
    /// # Errors
    /// [`EscrowError::Recipients`].
    pub fn seal(&self, recipients: &Recipients) -> Result<Vec<u8>, EscrowError> {
        let text = Zeroizing::new(page::safe::json_pretty(&Form {
            escrow_version: VERSION,
            of: self.of.clone(),
            sha256: self.sha256.clone(),
            key: hex(self.key.as_slice()),
            stations_left_out: self.stations.left_out,
            stations: pairs(&self.stations.stations),
            groups: pairs(&self.stations.groups),
        }));
        Ok(recipients.encrypt(text.as_bytes())?)
    }

    /// Opens one with private keys.
    ///
    /// # Errors
    /// When it is none, or for others.
    pub fn open(bytes: &[u8], identities: &Identities) -> Result<Self, EscrowError> {
        let plain = identities.decrypt(bytes, BYTES_MAX).ok_or(EscrowError::Closed)?;
        let form: Form = serde_json::from_slice(&plain)?;
        if form.escrow_version != VERSION {
            return Err(EscrowError::Version(form.escrow_version));
        }
        Ok(Self {
            key: Zeroizing::new(unhex(&form.key).ok_or(EscrowError::Hex)?),
            stations: Stations {
                stations: map(form.stations)?,
                groups: map(form.groups)?,
                left_out: form.stations_left_out,
            },
            of: form.of,
            sha256: form.sha256,
        })
    }
}
