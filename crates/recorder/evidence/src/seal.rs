//! The seal of a manifest or an anchor: a hash that finds accidents, and a signature that finds
//! intent.
//!
//! Both are over the text in front of the seal, byte by byte, so that a reader need not agree on
//! a canonical form of JSON.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Timestamp, hex, unhex};

use crate::key::{PublicKey, SigningKey};
use crate::trusted::{Trusted, TrustedKeys};

/// What stands between a text and its seal.
pub const BEFORE_SEAL: &str = ",\n  \"seal\": ";
/// What stands behind the seal.
pub const AFTER_SEAL: &str = "\n}\n";

/// What is written at the end of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// BLAKE3 of the text in front of the seal.
    pub blake3: [u8; 32],
    /// Who signed the text, and the signature.
    pub signature: Option<(PublicKey, [u8; 64])>,
}

/// Who signed something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signer {
    /// The key.
    pub key: PublicKey,
    /// What is known of it, where it is trusted.
    pub trusted: Option<Trusted>,
}

impl Signer {
    pub(crate) fn of(key: PublicKey, trusted: &TrustedKeys) -> Self {
        Self { key, trusted: trusted.find(&key).cloned() }
    }

    /// It is one of the keys that were given.
    pub fn is_trusted(&self) -> bool {
        self.trusted.is_some()
    }

    /// The key is trusted for other times than this one.
    pub fn is_out_of_time(&self, time: Timestamp) -> bool {
        self.trusted.as_ref().is_some_and(|trusted| !trusted.is_valid_at(time))
    }
}

impl Seal {
    /// Seals a text.
    pub fn of(text: &[u8], key: Option<&SigningKey>) -> Self {
        let signature = key.map(|key| (key.public(), key.sign(text)));
        Self { blake3: *blake3::hash(text).as_bytes(), signature }
    }

    /// Whether this is the seal of the text, and by whom. Where keys are trusted it has to be by
    /// one of them.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, text: &[u8], trusted: &TrustedKeys) -> Result<Option<Signer>, SealError> {
        if *blake3::hash(text).as_bytes() != self.blake3 {
            return Err(SealError::Changed);
        }
        let Some((key, signature)) = &self.signature else {
            return if trusted.is_empty() { Ok(None) } else { Err(SealError::Unsigned) };
        };
        let signer = Signer::of(*key, trusted);
        if !trusted.is_empty() && !signer.is_trusted() {
            return Err(SealError::OtherKey);
        }
        if key.has_signed(text, signature) { Ok(Some(signer)) } else { Err(SealError::Forged) }
    }
}

/// A text is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SealError {
    /// Its text is another.
    #[error("it was changed after it was written")]
    Changed,
    /// A signature that is none.
    #[error("its signature is not that of its key")]
    Forged,
    /// Signed, but by another key.
    #[error("it is signed with another key than the one given")]
    OtherKey,
    /// A signature was asked for.
    #[error("it is not signed")]
    Unsigned,
}

/// A seal as JSON has it: bytes in hex digits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SealForm {
    blake3: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ed25519: Option<SignatureForm>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct SignatureForm {
    public_key: String,
    signature: String,
}

impl SealForm {
    /// Of this seal.
    pub fn new(seal: &Seal) -> Self {
        let signature = |(key, signature): (PublicKey, [u8; 64])| SignatureForm {
            public_key: hex(&key.0),
            signature: hex(&signature),
        };
        Self { blake3: hex(&seal.blake3), ed25519: seal.signature.map(signature) }
    }

    fn read(&self) -> Option<Seal> {
        let signature = match &self.ed25519 {
            Some(SignatureForm { public_key, signature }) => {
                Some((PublicKey(unhex(public_key)?), unhex(signature)?))
            }
            None => None,
        };
        Some(Seal { blake3: unhex(&self.blake3)?, signature })
    }
}

/// A text has no seal that can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SealTextError {
    /// None at its end.
    #[error("there is no seal at its end")]
    None,
    /// Not JSON of its shape.
    #[error("its seal is of another form: {0}")]
    Json(#[source] serde_json::Error),
    /// A hash, key or signature of the wrong length or alphabet.
    #[error("it has a hash, key or signature that is not hex digits, so many of them")]
    Hex,
}

/// The text in front of the seal, and the seal.
///
/// # Errors
/// When there is none.
pub fn split_sealed(text: &str) -> Result<(&str, Seal), SealTextError> {
    let parts = text.rsplit_once(BEFORE_SEAL);
    let parts = parts.and_then(|(body, seal)| Some((body, seal.strip_suffix(AFTER_SEAL)?)));
    let (body, seal) = parts.ok_or(SealTextError::None)?;
    let seal: SealForm = serde_json::from_str(seal).map_err(SealTextError::Json)?;
    Ok((body, seal.read().ok_or(SealTextError::Hex)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, TEST 2.
    #[test]
    fn a_signature_is_that_of_the_standard() {
        let seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let begin = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da";
        let key = SigningKey::new(unhex(seed).unwrap());
        assert_eq!(key.public().0, unhex::<32>(public).unwrap());
        let (_, signature) = Seal::of(&[0x72], Some(&key)).signature.unwrap();
        assert_eq!(signature[..32], unhex::<32>(begin).unwrap());
    }

    #[test]
    fn a_seal_holds_for_its_text_and_its_key() {
        let (key, other) = (SigningKey::new([1; 32]), SigningKey::new([2; 32]));
        let nobody = TrustedKeys::default();
        let seal = Seal::of(b"text", Some(&key));
        let trusted = TrustedKeys::from(key.public());
        assert!(!seal.check(b"text", &nobody).unwrap().unwrap().is_trusted());
        assert!(seal.check(b"text", &trusted).unwrap().unwrap().is_trusted());
        assert_eq!(seal.check(b"texT", &nobody), Err(SealError::Changed));
        let others = TrustedKeys::from(other.public());
        assert_eq!(seal.check(b"text", &others), Err(SealError::OtherKey));
        let (_, bytes) = seal.signature.unwrap();
        let forged = Seal { signature: Some((other.public(), bytes)), ..seal };
        assert_eq!(forged.check(b"text", &nobody), Err(SealError::Forged));
        assert_eq!(forged.check(b"text", &others), Err(SealError::Forged));
        let unsigned = Seal { signature: None, ..seal };
        assert_eq!(unsigned.check(b"text", &nobody), Ok(None));
        assert_eq!(unsigned.check(b"text", &trusted), Err(SealError::Unsigned));
    }
}
