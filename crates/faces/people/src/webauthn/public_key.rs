//! Public keys in the form of COSE (RFC 9052, RFC 9053), and signatures by them.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use super::cbor::Map;
use super::party::WrongKey;

/// Algorithms of COSE, in the order in which they are wished for.
pub(crate) const ALGORITHMS: [i64; 3] = [ES256, EDDSA, RS256];
const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;

/// Labels of members, RFC 9052, section 7.1, and RFC 9053, section 7.
const KEY_TYPE: i64 = 1;
const ALGORITHM: i64 = 3;
const CURVE: i64 = -1;
const X: i64 = -2;
const Y: i64 = -3;
const MODULUS: i64 = -1;
const EXPONENT: i64 = -2;

/// Types of keys and their curves.
const OKP: i64 = 1;
const EC2: i64 = 2;
const RSA: i64 = 3;
const P256: i64 = 1;
const CURVE_25519: i64 = 6;
/// A coordinate of either curve.
const COORDINATE_BYTES: usize = 32;

/// A public key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PublicKey {
    /// A point of P-256, uncompressed.
    Es256(Vec<u8>),
    EdDsa(Vec<u8>),
    Rs256 {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
}

impl PublicKey {
    pub(crate) fn of(map: &Map) -> Result<Self, WrongKey> {
        match (map.number_at(KEY_TYPE)?, map.number_at(ALGORITHM)?) {
            (EC2, ES256) if map.number_at(CURVE)? == P256 => {
                let (x, y) = (coordinate(map, X)?, coordinate(map, Y)?);
                // The form without compression (SEC 1, section 2.3.3).
                Ok(Self::Es256([&[4], x, y].concat()))
            }
            (OKP, EDDSA) if map.number_at(CURVE)? == CURVE_25519 => {
                Ok(Self::EdDsa(coordinate(map, X)?.to_vec()))
            }
            (RSA, RS256) => Ok(Self::Rs256 {
                modulus: unpadded(map.bytes_at(MODULUS)?),
                exponent: unpadded(map.bytes_at(EXPONENT)?),
            }),
            _ => Err(WrongKey::Algorithm),
        }
    }

    /// The algorithm's number in COSE.
    pub(crate) fn algorithm(&self) -> i64 {
        match self {
            Self::Es256(_) => ES256,
            Self::EdDsa(_) => EDDSA,
            Self::Rs256 { .. } => RS256,
        }
    }

    /// Whether a signature of a message is by this key.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), WrongKey> {
        let verified = match self {
            Self::Es256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature)
            }
            Self::EdDsa(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            Self::Rs256 { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
        };
        verified.map_err(|_| WrongKey::Signature)
    }
}

fn coordinate(map: &Map, label: i64) -> Result<&[u8], WrongKey> {
    Some(map.bytes_at(label)?).filter(|it| it.len() == COORDINATE_BYTES).ok_or(WrongKey::Form)
}

/// Without zeros in front, which the library refuses.
fn unpadded(number: &[u8]) -> Vec<u8> {
    number.iter().copied().skip_while(|byte| *byte == 0).collect()
}
