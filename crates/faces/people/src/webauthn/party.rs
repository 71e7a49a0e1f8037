//! Whom keys are made for, and why one is refused.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

use crate::origin::Origin;

/// A service at one origin, for whom keys are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelyingParty {
    origin: Origin,
    /// The RP ID.
    domain: String,
}

impl RelyingParty {
    /// The service at an origin; none where browsers have no keys.
    pub fn new(origin: Origin) -> Option<Self> {
        let domain = origin.domain()?.to_owned();
        Some(Self { origin, domain })
    }

    /// Where its page is.
    pub fn origin(&self) -> &str {
        self.origin.as_str()
    }

    /// The domain that keys are made for.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// What an authenticator says instead of the domain.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.domain.as_bytes()).into()
    }
}

/// Why what a key said does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrongKey {
    /// What was sent is not what browsers send.
    #[error("what the browser sent is not what keys say")]
    Form,
    /// A registration in the place of a login, or the reverse.
    #[error("it was made for another purpose")]
    Purpose,
    /// The page that asked is another one.
    #[error("it was made at another address of the page: open the page at the one it is for")]
    Origin,
    /// Another service's key.
    #[error("it was made for another service")]
    Party,
    /// Nothing of the kind was asked, or it was used, or it took too long.
    #[error("it answers nothing that was asked, was used, or took longer than five minutes")]
    Challenge,
    /// Nobody touched the key.
    #[error("nobody touched the key")]
    Untouched,
    /// It is none of this person's keys.
    #[error("it is none of this person's keys")]
    Unknown,
    /// The key's signature is wrong.
    #[error("its signature is wrong")]
    Signature,
    /// A copy of the key has been used.
    #[error("its counter went back: a copy of the key may have been used; remove it")]
    Counter,
    /// An algorithm or a curve that is not taken.
    #[error("the key signs in a way that is not taken here: ES256, EdDSA and RS256 are")]
    Algorithm,
    /// The key's maker is vouched for, which was not asked.
    #[error("it has an attestation, which was not asked for")]
    Attestation,
}

/// The text form of bytes.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// Bytes from their text form.
pub(crate) fn from_text(text: &str) -> Result<Vec<u8>, WrongKey> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| WrongKey::Form)
}
