//! How ID tokens are signed: algorithms with a public key, and no others.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// A public key of a provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Whether a message is signed by a key in the way that a token names. What is signed with a secret
/// that both know (`HS256`), or not at all (`none`), is none: the key decides what may be named.
pub(crate) fn is_signed(
    key: &PublicKey,
    algorithm: &str,
    (message, signature): (&[u8], &[u8]),
) -> bool {
    let curve = |algorithm: &'static dyn VerificationAlgorithm, point: &[u8]| {
        UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
    };
    match (key, algorithm) {
        (PublicKey::Rsa { modulus, exponent }, name) => rsa(name).is_some_and(|parameters| {
            let key = RsaPublicKeyComponents { n: modulus, e: exponent };
            key.verify(parameters, message, signature).is_ok()
        }),
        (PublicKey::P256(point), "ES256") => curve(&ECDSA_P256_SHA256_FIXED, point),
        (PublicKey::P384(point), "ES384") => curve(&ECDSA_P384_SHA384_FIXED, point),
        (PublicKey::Ed25519(point), "EdDSA" | "Ed25519") => curve(&ED25519, point),
        _ => false,
    }
}

fn rsa(name: &str) -> Option<&'static RsaParameters> {
    Some(match name {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
