//! Keys: Ed25519 (RFC 8032), in the files of openssl and of OpenSSH.
//!
//! openssl: PKCS #8 and `SubjectPublicKeyInfo` in PEM (RFC 8410). OpenSSH: `openssh-key-v1`, with
//! a passphrase or without.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _};
use ssh_key::private::KeypairData;
use ssh_key::{HashAlg, LineEnding, PrivateKey};
use thiserror::Error;
use zeroize::Zeroizing;

/// What signatures are made for: one for something else does not count, and this does not count
/// there.
pub const NAMESPACE: &str = "wirespool";

/// What stands in front of the 32 bytes of a private key (RFC 8410, section 7).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// What stands in front of the 32 bytes of a public key (RFC 8410, section 4).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

const OPENSSH_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";

/// A file does not hold a key that can be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// None of the kind.
    #[error("no Ed25519 {kind} key in PEM, and none of OpenSSH")]
    None {
        /// `private` or `public`.
        kind: &'static str,
    },
    /// A key of OpenSSH that cannot sign here.
    #[error("this is a key of the kind {0}; signatures are Ed25519 (ssh-keygen -t ed25519)")]
    Algorithm(String),
    /// Nobody gave its passphrase.
    #[error("the key has a passphrase, and there is no terminal to ask for it")]
    Locked,
    /// The passphrase does not open it.
    #[error("the passphrase does not open the key")]
    Passphrase,
    /// A file of OpenSSH that is damaged.
    #[error("the file begins as a private key of OpenSSH and cannot be read")]
    Ssh,
    /// A line of allowed signers that OpenSSH would not take.
    #[error("an option of a line is unknown, comes twice, or cannot be read (ssh-keygen(1))")]
    Options,
    /// Every key in the file is for something else.
    #[error("each key in the file is for other namespaces than {NAMESPACE}, or an authority's")]
    OtherUse,
}

/// Asks for a passphrase; `None` where nobody can be asked.
pub type AskPassphrase<'a> = &'a mut dyn FnMut() -> Option<Zeroizing<String>>;

/// A key that signs.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    /// It came from a file of OpenSSH.
    ssh: Option<PrivateKey>,
}

impl core::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SigningKey(of {:?})", self.public())
    }
}

/// A key that checks whether the other signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey(pub [u8; 32]);

impl SigningKey {
    /// From 32 random bytes.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { key: ed25519_dalek::SigningKey::from_bytes(&seed), ssh: None }
    }

    /// Reads a file as [`Self::to_pem`] writes it, or `openssl genpkey -algorithm ed25519`, or
    /// `ssh-keygen -t ed25519`. `ask` is asked once, where a passphrase protects the key.
    ///
    /// # Errors
    /// When it holds no such key, or the passphrase is missing or wrong.
    pub fn read(text: &str, ask: AskPassphrase<'_>) -> Result<Self, KeyError> {
        if !text.trim_start().starts_with(OPENSSH_BEGIN) {
            let key = from_pem(text, "PRIVATE KEY", &PRIVATE_PREFIX);
            return key.map(Self::new).ok_or(KeyError::None { kind: "private" });
        }
        let mut key = PrivateKey::from_openssh(text.trim_start()).map_err(|_| KeyError::Ssh)?;
        let algorithm = key.algorithm();
        if algorithm != ssh_key::Algorithm::Ed25519 {
            return Err(KeyError::Algorithm(algorithm.to_string()));
        }
        if key.is_encrypted() {
            let passphrase = ask().ok_or(KeyError::Locked)?;
            key = key.decrypt(passphrase.as_bytes()).map_err(|_| KeyError::Passphrase)?;
        }
        let KeypairData::Ed25519(pair) = key.key_data() else { return Err(KeyError::Ssh) };
        let seed = Zeroizing::new(pair.private.to_bytes());
        Ok(Self { ssh: Some(key), ..Self::new(*seed) })
    }

    /// The file to be kept secret.
    pub fn to_pem(&self) -> String {
        to_pem("PRIVATE KEY", &PRIVATE_PREFIX, self.key.as_bytes())
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }

    /// A signature of a whole file as `ssh-keygen -Y sign` makes it; `None` unless the key came
    /// from a file of OpenSSH.
    pub fn ssh_signature(&self, text: &str) -> Option<String> {
        let signed = self.ssh.as_ref()?.sign(NAMESPACE, HashAlg::Sha512, text.as_bytes());
        signed.ok()?.to_pem(LineEnding::LF).ok()
    }
}

impl PublicKey {
    /// Reads a file as [`Self::to_pem`] writes it, or `openssl pkey -pubout`.
    pub(crate) fn from_pem(text: &str) -> Option<Self> {
        from_pem(text, "PUBLIC KEY", &PUBLIC_PREFIX).map(Self)
    }

    /// The file to be given away.
    pub fn to_pem(self) -> String {
        to_pem("PUBLIC KEY", &PUBLIC_PREFIX, &self.0)
    }

    /// As OpenSSH shows it: `SHA256:...`.
    pub fn fingerprint(self) -> String {
        let key = ssh_key::public::KeyData::Ed25519(ssh_key::public::Ed25519PublicKey(self.0));
        key.fingerprint(HashAlg::Sha256).to_string()
    }

    pub(crate) fn has_signed(self, text: &[u8], signature: &[u8; 64]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trusted::TrustedKeys;

    fn read(text: &str, passphrase: Option<&str>) -> Result<SigningKey, KeyError> {
        SigningKey::read(text, &mut || passphrase.map(|it| Zeroizing::new(it.to_owned())))
    }

    /// The file that openssl writes for the key of RFC 8032, TEST 1.
    #[test]
    fn keys_are_those_of_openssl() {
        let private = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
            -----END PRIVATE KEY-----\n";
        let key = read(private, None).unwrap();
        assert_eq!(key.to_pem(), private);
        assert_eq!(key.ssh_signature("text"), None);
        let public = key.public();
        assert_eq!(public.0[..4], [0xd7, 0x5a, 0x98, 0x01]);
        assert_eq!(PublicKey::from_pem(&public.to_pem()), Some(public));
        assert!(read(&public.to_pem(), None).is_err());
        assert!(PublicKey::from_pem("").is_none());
    }

    /// As `ssh-keygen -t ed25519 -a 2 -N secret` writes it.
    const LOCKED: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDTEBikHG
lWOvWa6wU63UBBAAAAAgAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIPaJfs72njEvlz9w
zc4tKP+rnUBu/SUKKRzc1+XBC4agAAAAkMXXGErdF6OMvDzTEK22GB7eIGR2bRuYZxQt2O
fBIMlybWWCuGrscvTQso0r5yQPvu4hNUgDYb2k0SGFL6VKMjUQZQQK5e0nQ4mW8BkTocV8
2fTgvHNkVlf1K26XzG04l3pZ6J98/eEkmMme/hO71MaQEyFcTOQB5icm33VwJ3E9stlMgI
37IIKT8492Y2npjg==
-----END OPENSSH PRIVATE KEY-----
";
    const LOCKED_PUBLIC: &str = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIPaJfs72njEvlz9wzc4tKP+rnUBu/SUKKRzc1+XBC4ag who@where";

    #[test]
    fn keys_are_those_of_openssh_with_and_without_a_passphrase() {
        let key = read(LOCKED, Some("secret")).unwrap();
        let trusted = TrustedKeys::parse(LOCKED_PUBLIC).unwrap();
        let known = trusted.find(&key.public()).expect("the halves belong together");
        assert_eq!(known.name.as_deref(), Some("who@where"));
        assert_eq!(read(LOCKED, Some("other")).unwrap_err(), KeyError::Passphrase);
        assert_eq!(read(LOCKED, None).unwrap_err(), KeyError::Locked);
        assert_eq!(read(&LOCKED[..200], None).unwrap_err(), KeyError::Ssh);
        let signature = key.ssh_signature("text").unwrap();
        assert!(signature.starts_with("-----BEGIN SSH SIGNATURE-----\n"), "{signature}");

        let pair = ssh_key::private::Ed25519Keypair::from_seed(&[7; 32]);
        let plain = PrivateKey::new(KeypairData::Ed25519(pair), "").unwrap();
        let text = plain.to_openssh(LineEnding::LF).unwrap();
        let read = read(&text, None).unwrap();
        assert_eq!(read.public(), SigningKey::new([7; 32]).public());
        let shown = plain.public_key().fingerprint(HashAlg::Sha256).to_string();
        assert_eq!(read.public().fingerprint(), shown);
    }
}
