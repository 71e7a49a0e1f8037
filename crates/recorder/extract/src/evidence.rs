//! The seal of a manifest: a hash that finds accidents, and a signature that finds intent.
//!
//! Both are over the manifest's text in front of the seal, byte by byte, so that a reader need not
//! agree on a canonical form of JSON. Keys are Ed25519 (RFC 8032) in the files that openssl reads
//! and writes: PKCS #8 and `SubjectPublicKeyInfo` in PEM (RFC 8410).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _};
use thiserror::Error;

/// What stands in front of the 32 bytes of a private key (RFC 8410, section 7).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// What stands in front of the 32 bytes of a public key (RFC 8410, section 4).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// A file does not hold a key of the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("no Ed25519 {kind} key in PEM")]
pub struct KeyError {
    kind: &'static str,
}

/// A key that signs.
#[derive(Debug)]
pub struct SigningKey(ed25519_dalek::SigningKey);

/// A key that checks whether the other signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey(pub [u8; 32]);

impl SigningKey {
    /// From 32 random bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Reads a file as [`Self::to_pem`] writes it, or `openssl genpkey -algorithm ed25519`.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let key = from_pem(text, "PRIVATE KEY", &PRIVATE_PREFIX);
        key.map(Self::new).ok_or(KeyError { kind: "private" })
    }

    /// The file to be kept secret.
    pub fn to_pem(&self) -> String {
        to_pem("PRIVATE KEY", &PRIVATE_PREFIX, self.0.as_bytes())
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }
}

impl PublicKey {
    /// Reads a file as [`Self::to_pem`] writes it, or `openssl pkey -pubout`.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let key = from_pem(text, "PUBLIC KEY", &PUBLIC_PREFIX);
        key.map(Self).ok_or(KeyError { kind: "public" })
    }

    /// The file to be given away.
    pub fn to_pem(self) -> String {
        to_pem("PUBLIC KEY", &PUBLIC_PREFIX, &self.0)
    }

    fn has_signed(self, text: &[u8], signature: &[u8; 64]) -> bool {
        let key = ed25519_dalek::VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(text, &Signature::from_bytes(signature)).is_ok())
    }
}

fn to_pem(name: &str, prefix: &[u8], key: &[u8; 32]) -> String {
    let body = STANDARD.encode([prefix, key].concat());
    format!("-----BEGIN {name}-----\n{body}\n-----END {name}-----\n")
}

fn from_pem(text: &str, name: &str, prefix: &[u8]) -> Option<[u8; 32]> {
    let (_, text) = text.split_once(&format!("-----BEGIN {name}-----"))?;
    let (body, _) = text.split_once(&format!("-----END {name}-----"))?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()?.strip_prefix(prefix)?.try_into().ok()
}

/// What is written at the end of a manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    /// BLAKE3 of the text in front of the seal.
    pub blake3: [u8; 32],
    /// Who signed the text, and the signature.
    pub signature: Option<(PublicKey, [u8; 64])>,
}

impl Seal {
    /// Seals a text.
    pub fn of(text: &[u8], key: Option<&SigningKey>) -> Self {
        let signature = key.map(|key| (key.public(), key.0.sign(text).to_bytes()));
        Self { blake3: *blake3::hash(text).as_bytes(), signature }
    }

    /// Whether this is the seal of the text, and by whom: `trusted`, if a key is given.
    pub fn check(&self, text: &[u8], trusted: Option<&PublicKey>) -> Result<(), SealError> {
        if *blake3::hash(text).as_bytes() != self.blake3 {
            return Err(SealError::Changed);
        }
        match (&self.signature, trusted) {
            (None, Some(_)) => Err(SealError::Unsigned),
            (None, None) => Ok(()),
            (Some((key, _)), Some(trusted)) if key != trusted => Err(SealError::OtherKey),
            (Some((key, signature)), _) if key.has_signed(text, signature) => Ok(()),
            (Some(_), _) => Err(SealError::Forged),
        }
    }
}

/// A manifest is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SealError {
    /// Its text is another.
    #[error("the manifest was changed after it was written")]
    Changed,
    /// A signature that is none.
    #[error("the manifest's signature is not that of its key")]
    Forged,
    /// Signed, but by another key.
    #[error("the manifest is signed with another key than the one given")]
    OtherKey,
    /// A signature was asked for.
    #[error("the manifest is not signed")]
    Unsigned,
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
        let hex = |text: &str| -> [u8; 32] {
            core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        };
        let key = SigningKey::new(hex(seed));
        assert_eq!(key.public().0, hex(public));
        let (_, signature) = Seal::of(&[0x72], Some(&key)).signature.unwrap();
        assert_eq!(signature[..32], hex(begin));
    }

    /// The file that openssl writes for the key of RFC 8032, TEST 1.
    #[test]
    fn keys_are_those_of_openssl() {
        let private = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
            -----END PRIVATE KEY-----\n";
        let key = SigningKey::from_pem(private).unwrap();
        assert_eq!(key.to_pem(), private);
        let public = key.public();
        assert_eq!(public.0[..4], [0xd7, 0x5a, 0x98, 0x01]);
        assert_eq!(PublicKey::from_pem(&public.to_pem()), Ok(public));
        assert!(SigningKey::from_pem(&public.to_pem()).is_err());
        assert!(PublicKey::from_pem("").is_err());
    }

    #[test]
    fn a_seal_holds_for_its_text_and_its_key() {
        let (key, other) = (SigningKey::new([1; 32]), SigningKey::new([2; 32]));
        let seal = Seal::of(b"text", Some(&key));
        assert_eq!(seal.check(b"text", None), Ok(()));
        assert_eq!(seal.check(b"text", Some(&key.public())), Ok(()));
        assert_eq!(seal.check(b"texT", None), Err(SealError::Changed));
        assert_eq!(seal.check(b"text", Some(&other.public())), Err(SealError::OtherKey));
        let (_, bytes) = seal.signature.unwrap();
        let forged = Seal { signature: Some((other.public(), bytes)), ..seal };
        assert_eq!(forged.check(b"text", None), Err(SealError::Forged));
        let unsigned = Seal { signature: None, ..seal };
        assert_eq!(unsigned.check(b"text", None), Ok(()));
        assert_eq!(unsigned.check(b"text", Some(&key.public())), Err(SealError::Unsigned));
    }
}
