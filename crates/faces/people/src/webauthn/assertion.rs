//! A login by a key (section 7.2).

use serde::Deserialize;

use super::authenticator::AuthenticatorData;
use super::client_data::{ClientData, Purpose};
use super::key::Key;
use super::party::{RelyingParty, WrongKey, from_text};

/// What a page sends of a key that was touched, each in base 64 for URLs.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// Id of the key.
    pub id: String,
    /// `clientDataJSON`.
    pub client_data: String,
    /// `authenticatorData`.
    pub authenticator_data: String,
    /// Of both.
    pub signature: String,
}

/// A use of a key that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyUse {
    pub(crate) id: String,
    pub(crate) counter: u32,
}

impl Assertion {
    /// Which of a person's keys was used, where all of it is right. `was_asked` uses up a
    /// challenge, and says whether there was one.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(
        &self,
        party: &RelyingParty,
        keys: &[Key],
        was_asked: impl FnOnce(&[u8]) -> bool,
    ) -> Result<KeyUse, WrongKey> {
        let bytes = from_text(&self.client_data)?;
        let client_data = ClientData::read(&bytes, Purpose::Get, party)?;
        if !was_asked(&client_data.challenge) {
            return Err(WrongKey::Challenge);
        }
        let key = keys.iter().find(|key| key.id() == self.id).ok_or(WrongKey::Unknown)?;
        let said = from_text(&self.authenticator_data)?;
        let AuthenticatorData { counter, made } = AuthenticatorData::read(&said, party)?;
        if made.is_some() {
            return Err(WrongKey::Form);
        }
        let message = [said.as_slice(), client_data.hash.as_slice()].concat();
        key.public_key()?.verify(&message, &from_text(&self.signature)?)?;
        if !key.is_newer(counter) {
            return Err(WrongKey::Counter);
        }
        Ok(KeyUse { id: key.id().to_owned(), counter })
    }
}
