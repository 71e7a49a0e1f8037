//! What an authenticator says (section 6.1).
//!
//! ```text
//! hash of the domain 32 | flags 1 | counter 4 | [new key] | [extensions: a map of CBOR]
//! new key: AAGUID 16 | length of the id 2 | id | public key: a map of CBOR
//! ```

use super::cbor::Map;
use super::party::{RelyingParty, WrongKey};
use super::public_key::PublicKey;

const USER_PRESENT: u8 = 1;
const BACKUP_ELIGIBLE: u8 = 1 << 3;
const BACKED_UP: u8 = 1 << 4;
const HAS_KEY: u8 = 1 << 6;
const HAS_EXTENSIONS: u8 = 1 << 7;

/// Ids are this long at most (section 5.8.3).
const ID_BYTES_MAX: usize = 1023;

/// What an authenticator says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthenticatorData {
    /// Uses of the key so far; 0 where it counts none.
    pub(crate) counter: u32,
    pub(crate) made: Option<Made>,
}

/// A key that was just made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Made {
    pub(crate) id: Vec<u8>,
    pub(crate) public_key: PublicKey,
    /// As it was sent.
    pub(crate) cose: Vec<u8>,
}

impl AuthenticatorData {
    /// Reads what was said to a service by a key that somebody touched.
    pub(crate) fn read(mut bytes: &[u8], party: &RelyingParty) -> Result<Self, WrongKey> {
        let domain: [u8; 32] = take(&mut bytes)?;
        let [flags] = take(&mut bytes)?;
        let counter = u32::from_be_bytes(take(&mut bytes)?);
        if domain != party.hash() {
            return Err(WrongKey::Party);
        }
        let has = |flag: u8| flags & flag != 0;
        if !has(USER_PRESENT) {
            return Err(WrongKey::Untouched);
        }
        if has(BACKED_UP) && !has(BACKUP_ELIGIBLE) {
            return Err(WrongKey::Form);
        }
        let made = has(HAS_KEY).then(|| Made::read(&mut bytes)).transpose()?;
        if has(HAS_EXTENSIONS) {
            Map::read(&mut bytes)?;
        }
        bytes.is_empty().then_some(Self { counter, made }).ok_or(WrongKey::Form)
    }
}

impl Made {
    fn read(bytes: &mut &[u8]) -> Result<Self, WrongKey> {
        let _aaguid: [u8; 16] = take(bytes)?;
        let id_len = usize::from(u16::from_be_bytes(take(bytes)?));
        let (id, rest) = bytes.split_at_checked(id_len).ok_or(WrongKey::Form)?;
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            return Err(WrongKey::Form);
        }
        let mut behind = rest;
        let public_key = PublicKey::of(&Map::read(&mut behind)?)?;
        let cose_len = rest.len().saturating_sub(behind.len());
        let (cose, behind) = rest.split_at_checked(cose_len).ok_or(WrongKey::Form)?;
        *bytes = behind;
        Ok(Self { id: id.to_vec(), public_key, cose: cose.to_vec() })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], WrongKey> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(WrongKey::Form)?;
    *bytes = rest;
    Ok(*taken)
}
