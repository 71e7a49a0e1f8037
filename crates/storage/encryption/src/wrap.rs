//! Recipients, to whom data keys are wrapped, as files of age.

use std::io::Write;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::key::{DataKey, KEY_BYTES};

/// Bytes behind the key in a wrapped key: the volume and the number that it is of.
pub(crate) const BOUND_BYTES: usize = 24;

/// Why text names nobody that keys can be wrapped to, or no private key.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum WrapError {
    /// Not the public key of an age identity, nor of SSH.
    #[error(
        "{0:?} is no recipient: age1..., the public key that age-keygen prints, or ssh-ed25519 or \
         ssh-rsa with a key of at least 2048 bits"
    )]
    Recipient(String),
    /// There is none.
    #[error("there is no recipient")]
    NoRecipient,
    /// A file of identities that cannot be read as one.
    #[error(
        "it holds no identity: AGE-SECRET-KEY-1..., as age-keygen writes it, or a private key of \
         SSH ({0})"
    )]
    Identity(String),
    /// It is an encrypted credential of systemd, which its machine has to open first.
    #[error(
        "it is an encrypted credential of systemd, which a service gets opened: name it in the \
         unit (LoadCredentialEncrypted=), and give the path below /run/credentials"
    )]
    Credential,
    /// It is encrypted with a passphrase, and there is nobody to ask, or it is not this one.
    #[error("it is encrypted with a passphrase, {0}")]
    Passphrase(&'static str),
    /// The library refuses these recipients together.
    #[error("a key cannot be wrapped to these recipients: {0}")]
    Together(String),
}

/// Who can read what is recorded: public keys.
pub struct Recipients {
    all: Vec<Box<dyn age::Recipient + Send + Sync>>,
}

impl core::fmt::Debug for Recipients {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Recipients({})", self.all.len())
    }
}

impl Recipients {
    /// Of their texts: `age1...` (X25519), `age1tag1...` and `age1tagpq1...` (keys in hardware, the
    /// latter with ML-KEM beside P-256), `ssh-ed25519 ...` and `ssh-rsa ...`.
    ///
    /// # Errors
    /// One of them is none; there is none; they cannot be used together.
    pub fn parse(texts: &[String]) -> Result<Self, WrapError> {
        let all = texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() {
            return Err(WrapError::NoRecipient);
        }
        let recipients = Self { all };
        recipients.wrap(&DataKey::new([0; KEY_BYTES]), [0; 16], 0)?;
        Ok(recipients)
    }

    /// Encrypts a text to all of them, as a file of age.
    ///
    /// # Errors
    /// [`WrapError::Together`].
    pub fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, WrapError> {
        let together = |error: &dyn core::fmt::Display| WrapError::Together(error.to_string());
        let recipients = self.all.iter().map(|it| -> &dyn age::Recipient { it.as_ref() });
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(|it| together(&it))?;
        let mut sealed = Vec::new();
        let mut writer = encryptor.wrap_output(&mut sealed).map_err(|it| together(&it))?;
        writer.write_all(plain).map_err(|it| together(&it))?;
        writer.finish().map_err(|it| together(&it))?;
        Ok(sealed)
    }

    /// Encrypts a data key to all of them. It can be unwrapped only as the key of this volume and
    /// this number.
    ///
    /// # Errors
    /// [`WrapError::Together`].
    pub fn wrap(
        &self,
        key: &DataKey,
        volume_id: [u8; 16],
        key_id: u64,
    ) -> Result<Vec<u8>, WrapError> {
        let mut payload = Zeroizing::new(Vec::with_capacity(KEY_BYTES + BOUND_BYTES));
        payload.extend_from_slice(key.bytes());
        payload.extend_from_slice(&volume_id);
        payload.extend_from_slice(&key_id.to_le_bytes());
        self.encrypt(&payload)
    }
}

fn parse(text: &str) -> Result<Box<dyn age::Recipient + Send + Sync>, WrapError> {
    if let Ok(recipient) = text.parse::<age::x25519::Recipient>() {
        return Ok(Box::new(recipient));
    }
    if let Ok(recipient) = text.parse::<age::tag::Recipient>() {
        return Ok(Box::new(recipient));
    }
    if let Ok(recipient) = text.parse::<age::tagpq::Recipient>() {
        return Ok(Box::new(recipient));
    }
    if let Ok(recipient) = text.parse::<age::ssh::Recipient>() {
        return Ok(Box::new(recipient));
    }
    Err(WrapError::Recipient(text.chars().take(80).collect()))
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;
    use crate::identity::Identities;

    fn parse_identities(text: &str) -> Result<Identities, WrapError> {
        Identities::parse(text.as_bytes(), &|| None)
    }

    fn pair() -> (String, String) {
        let identity = age::x25519::Identity::generate();
        let secret = identity.to_string().expose_secret().to_owned();
        (identity.to_public().to_string(), secret)
    }

    #[test]
    fn each_recipient_unwraps_and_nobody_else() {
        let (one, two, other) = (pair(), pair(), pair());
        let recipients = Recipients::parse(&[one.0, two.0]).unwrap();
        let key = DataKey::new([3; 32]);
        let wrapped = recipients.wrap(&key, [1; 16], 5).unwrap();
        for secret in [&one.1, &two.1, &format!("# a comment\n{}\n{}\n", other.1, two.1)] {
            let identities = parse_identities(secret).unwrap();
            let unwrapped = identities.unwrap(&wrapped, [1; 16], 5).unwrap();
            assert_eq!(unwrapped.bytes(), key.bytes());
            assert!(identities.unwrap(&wrapped, [1; 16], 6).is_none(), "of another number");
            assert!(identities.unwrap(&wrapped, [2; 16], 5).is_none(), "of another volume");
        }
        let stranger = parse_identities(&other.1).unwrap();
        assert!(stranger.unwrap(&wrapped, [1; 16], 5).is_none());
    }

    #[test]
    fn a_changed_key_is_none() {
        let (public, secret) = pair();
        let recipients = Recipients::parse(&[public]).unwrap();
        let wrapped = recipients.wrap(&DataKey::new([3; 32]), [1; 16], 5).unwrap();
        let identities = parse_identities(&secret).unwrap();
        for at in 0..wrapped.len() {
            let mut changed = wrapped.clone();
            changed[at] ^= 1;
            assert!(identities.unwrap(&changed, [1; 16], 5).is_none(), "byte {at}");
            assert!(identities.unwrap(&wrapped[..at], [1; 16], 5).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn what_is_no_key_is_named() {
        let (public, secret) = pair();
        assert_eq!(Recipients::parse(&[]).unwrap_err(), WrapError::NoRecipient);
        for text in ["", "age1", "ssh-ed25519 AAAA", &secret, &public[..20]] {
            let error = Recipients::parse(&[text.to_owned()]).unwrap_err();
            assert!(matches!(error, WrapError::Recipient(_)), "{text}: {error}");
        }
        for text in ["", "# nothing", "age1", &public] {
            let error = parse_identities(text).unwrap_err();
            assert!(matches!(error, WrapError::Identity(_)), "{text}: {error}");
        }
    }
}
