//! Signatures of OpenSSH (`PROTOCOL.sshsig`): what `ssh-keygen -Y verify` reads.

use ssh_key::public::KeyData;
use ssh_key::{Algorithm, SshSig};
use thiserror::Error;

use crate::key::{NAMESPACE, PublicKey};
use crate::seal::Signer;
use crate::trusted::TrustedKeys;

/// A signature file is not one of this text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SshSignatureError {
    /// No signature of OpenSSH.
    #[error("it is no signature of ssh-keygen")]
    Form,
    /// Made for something else.
    #[error("it was made for the namespace {0}, not for {NAMESPACE}")]
    Namespace(String),
    /// By a key of another kind.
    #[error("it was made with a key of the kind {0}, which is not read here")]
    Algorithm(String),
    /// Of another text.
    #[error("it does not fit the file: one of them was changed")]
    Forged,
}

/// Who signed the text, by a signature file beside it.
///
/// # Errors
/// When the file is no signature of this text.
pub fn check_ssh_signature(
    signature: &str,
    text: &[u8],
    trusted: &TrustedKeys,
) -> Result<Signer, SshSignatureError> {
    let signature = SshSig::from_pem(signature).map_err(|_| SshSignatureError::Form)?;
    if signature.namespace() != NAMESPACE {
        return Err(SshSignatureError::Namespace(signature.namespace().to_owned()));
    }
    let KeyData::Ed25519(key) = signature.public_key() else {
        return Err(SshSignatureError::Algorithm(signature.algorithm().to_string()));
    };
    if signature.signature().algorithm() != Algorithm::Ed25519 {
        return Err(SshSignatureError::Forged);
    }
    let signed = SshSig::signed_data(NAMESPACE, signature.hash_alg(), text);
    let signed = signed.map_err(|_| SshSignatureError::Form)?;
    let bytes = signature.signature_bytes().try_into();
    let bytes: [u8; 64] = bytes.map_err(|_| SshSignatureError::Forged)?;
    let key = PublicKey(key.0);
    if !key.has_signed(&signed, &bytes) {
        return Err(SshSignatureError::Forged);
    }
    Ok(Signer::of(key, trusted))
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::{HashAlg, LineEnding, PrivateKey};

    use super::*;

    #[test]
    fn a_signature_holds_for_its_text_its_key_and_its_namespace() {
        let pair = Ed25519Keypair::from_seed(&[3; 32]);
        let key = PrivateKey::new(KeypairData::Ed25519(pair), "").unwrap();
        let sign = |namespace: &str| {
            let signed = key.sign(namespace, HashAlg::Sha256, b"text").unwrap();
            signed.to_pem(LineEnding::LF).unwrap()
        };
        let (ours, other) = (sign(NAMESPACE), sign("git"));
        let nobody = TrustedKeys::default();
        let signer = check_ssh_signature(&ours, b"text", &nobody).unwrap();
        assert!(!signer.is_trusted());
        let trusted = TrustedKeys::from(signer.key);
        assert!(check_ssh_signature(&ours, b"text", &trusted).unwrap().is_trusted());
        let check = |signature: &str, text: &[u8]| check_ssh_signature(signature, text, &nobody);
        assert_eq!(check(&ours, b"texT"), Err(SshSignatureError::Forged));
        let namespace = SshSignatureError::Namespace("git".to_owned());
        assert_eq!(check(&other, b"text"), Err(namespace));
        assert_eq!(check("", b"text"), Err(SshSignatureError::Form));
        for at in (0..ours.len()).step_by(3) {
            let mut changed = ours.clone().into_bytes();
            changed[at] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let signer = check(&changed, b"text");
            // White space and what lies outside of the frame may differ.
            assert!(signer.as_ref().is_err() || signer.as_ref().unwrap().key == trusted_key(&key));
        }
    }

    fn trusted_key(key: &PrivateKey) -> PublicKey {
        let KeyData::Ed25519(key) = key.public_key().key_data() else { panic!("it is one") };
        PublicKey(key.0)
    }
}
