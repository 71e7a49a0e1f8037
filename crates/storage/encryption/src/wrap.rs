//! Recipients, to whom data keys are wrapped, and identities, which unwrap them: files of age.

use std::io::{BufReader, Read, Write};
use std::sync::Arc;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::key::{DataKey, KEY_BYTES};

/// Bytes behind the key in a wrapped key: the volume and the number that it is of.
const BOUND_BYTES: usize = 24;
/// Most bytes that are unwrapped: a wrapped key is 56.
const PAYLOAD_MAX: u64 = 64;

/// Why text names nobody that keys can be wrapped to, or no private key.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum WrapError {
    /// Not the public key of an age identity.
    #[error("{0:?} is no recipient: age1..., the public key that age-keygen prints")]
    Recipient(String),
    /// There is none.
    #[error("there is no recipient")]
    NoRecipient,
    /// A file of identities that cannot be read as one.
    #[error("it holds no identity: AGE-SECRET-KEY-1..., as age-keygen writes it ({0})")]
    Identity(String),
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
    /// latter with ML-KEM beside P-256).
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
        let together = |error: &dyn core::fmt::Display| WrapError::Together(error.to_string());
        let recipients = self.all.iter().map(|it| -> &dyn age::Recipient { it.as_ref() });
        let encryptor = age::Encryptor::with_recipients(recipients).map_err(|it| together(&it))?;
        let mut payload = Zeroizing::new(Vec::with_capacity(KEY_BYTES + BOUND_BYTES));
        payload.extend_from_slice(key.bytes());
        payload.extend_from_slice(&volume_id);
        payload.extend_from_slice(&key_id.to_le_bytes());
        let mut wrapped = Vec::new();
        let mut writer = encryptor.wrap_output(&mut wrapped).map_err(|it| together(&it))?;
        writer.write_all(&payload).map_err(|it| together(&it))?;
        writer.finish().map_err(|it| together(&it))?;
        Ok(wrapped)
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
    Err(WrapError::Recipient(text.chars().take(80).collect()))
}

/// Private keys of recipients; a copy is the same keys.
#[derive(Clone)]
pub struct Identities {
    all: Arc<Vec<Box<dyn age::Identity + Send + Sync>>>,
}

impl PartialEq for Identities {
    /// Whether they are copies of each other.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }
}

impl Eq for Identities {}

impl core::fmt::Debug for Identities {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Identities({})", self.all.len())
    }
}

impl Identities {
    /// Of the content of a file as `age-keygen` writes it: one `AGE-SECRET-KEY-1...` a line,
    /// comments behind `#`.
    ///
    /// # Errors
    /// [`WrapError::Identity`].
    pub fn parse(text: &str) -> Result<Self, WrapError> {
        let refused = |why: &dyn core::fmt::Display| WrapError::Identity(why.to_string());
        let file = age::IdentityFile::from_buffer(BufReader::new(text.as_bytes()));
        let file = file.map_err(|error| refused(&error))?;
        let all = file.into_identities().map_err(|error| refused(&error))?;
        if all.is_empty() { Err(refused(&"it is empty")) } else { Ok(Self { all: Arc::new(all) }) }
    }

    /// The data key of this volume and number, if it was wrapped to one of these.
    pub fn unwrap(&self, wrapped: &[u8], volume_id: [u8; 16], key_id: u64) -> Option<DataKey> {
        let decryptor = age::Decryptor::new(wrapped).ok()?;
        let identities = self.all.iter().map(|it| -> &dyn age::Identity { it.as_ref() });
        let reader = decryptor.decrypt(identities).ok()?;
        let mut payload = Zeroizing::new(Vec::with_capacity(KEY_BYTES + BOUND_BYTES + 1));
        reader.take(PAYLOAD_MAX).read_to_end(&mut payload).ok()?;
        let (key, bound) = payload.split_first_chunk::<KEY_BYTES>()?;
        let is_it = bound == [volume_id.as_slice(), &key_id.to_le_bytes()].concat();
        is_it.then(|| DataKey::new(*key))
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

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
            let identities = Identities::parse(secret).unwrap();
            let unwrapped = identities.unwrap(&wrapped, [1; 16], 5).unwrap();
            assert_eq!(unwrapped.bytes(), key.bytes());
            assert!(identities.unwrap(&wrapped, [1; 16], 6).is_none(), "of another number");
            assert!(identities.unwrap(&wrapped, [2; 16], 5).is_none(), "of another volume");
        }
        let stranger = Identities::parse(&other.1).unwrap();
        assert!(stranger.unwrap(&wrapped, [1; 16], 5).is_none());
    }

    #[test]
    fn a_changed_key_is_none() {
        let (public, secret) = pair();
        let recipients = Recipients::parse(&[public]).unwrap();
        let wrapped = recipients.wrap(&DataKey::new([3; 32]), [1; 16], 5).unwrap();
        let identities = Identities::parse(&secret).unwrap();
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
            let error = Identities::parse(text).unwrap_err();
            assert!(matches!(error, WrapError::Identity(_)), "{text}: {error}");
        }
    }
}
