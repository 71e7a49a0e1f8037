//! A new key (section 7.1).

use serde::Deserialize;

use super::authenticator::{AuthenticatorData, Made};
use super::cbor::Map;
use super::client_data::{ClientData, Purpose};
use super::key::NewKey;
use super::party::{RelyingParty, WrongKey, from_text};
use super::public_key::ALGORITHMS;

/// What a page sends of a new key.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// `clientDataJSON`, in base 64 for URLs.
    pub client_data: String,
    /// `attestationObject`, in base 64 for URLs.
    pub attestation: String,
}

impl Registration {
    /// Algorithms that a new key may have, as COSE numbers them; the best first.
    pub const ALGORITHMS: [i64; 3] = ALGORITHMS;

    /// The key, where all of it is right. `was_asked` uses up a challenge, and says whether there
    /// was one.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(
        &self,
        party: &RelyingParty,
        was_asked: impl FnOnce(&[u8]) -> bool,
    ) -> Result<NewKey, WrongKey> {
        let client_data = from_text(&self.client_data)?;
        let client_data = ClientData::read(&client_data, Purpose::Create, party)?;
        if !was_asked(&client_data.challenge) {
            return Err(WrongKey::Challenge);
        }
        let attestation = from_text(&self.attestation)?;
        let mut rest = attestation.as_slice();
        let attestation = Map::read(&mut rest)?;
        if !rest.is_empty() {
            return Err(WrongKey::Form);
        }
        let said = attestation.bytes("authData")?;
        let AuthenticatorData { counter, made } = AuthenticatorData::read(said, party)?;
        let made = made.ok_or(WrongKey::Form)?;
        check_statement(&attestation, (said, &client_data), &made)?;
        Ok(NewKey { id: made.id, cose: made.cose, counter })
    }
}

/// None was asked for. A key without a make may sign for itself all the same (section 8.2).
fn check_statement(
    attestation: &Map,
    (said, client_data): (&[u8], &ClientData),
    made: &Made,
) -> Result<(), WrongKey> {
    let statement = attestation.map("attStmt")?;
    match attestation.text("fmt")? {
        "none" if statement.is_empty() => Ok(()),
        "packed" if !statement.has("x5c") => {
            if statement.number("alg")? != made.public_key.algorithm() {
                return Err(WrongKey::Algorithm);
            }
            let message = [said, client_data.hash.as_slice()].concat();
            made.public_key.verify(&message, statement.bytes("sig")?)
        }
        _ => Err(WrongKey::Attestation),
    }
}
