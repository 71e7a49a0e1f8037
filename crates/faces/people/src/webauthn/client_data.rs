//! What a browser says of the page that asked a key (section 5.8.1).

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::party::{RelyingParty, WrongKey, from_text};

/// What a key was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Create,
    Get,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "webauthn.create",
            Self::Get => "webauthn.get",
        }
    }
}

/// Browsers may say more, which does not count.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "type")]
    purpose: String,
    challenge: String,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    is_cross_origin: bool,
    #[serde(default, rename = "topOrigin")]
    top_origin: Option<String>,
}

/// What a browser says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClientData {
    pub(crate) challenge: Vec<u8>,
    /// What the key signs of it.
    pub(crate) hash: [u8; 32],
}

impl ClientData {
    /// Reads what was said for this purpose at the service's own page.
    pub(crate) fn read(
        bytes: &[u8],
        purpose: Purpose,
        party: &RelyingParty,
    ) -> Result<Self, WrongKey> {
        let said: Said = serde_json::from_slice(bytes).map_err(|_| WrongKey::Form)?;
        if said.purpose != purpose.word() {
            return Err(WrongKey::Purpose);
        }
        let is_framed = said.is_cross_origin || said.top_origin.is_some();
        if said.origin != party.origin() || is_framed {
            return Err(WrongKey::Origin);
        }
        let challenge = from_text(&said.challenge)?;
        Ok(Self { challenge, hash: Sha256::digest(bytes).into() })
    }
}
