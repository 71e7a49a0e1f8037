//! A person's key, as the file has it.

use serde::{Deserialize, Serialize};

use super::cbor::Map;
use super::party::{WrongKey, from_text, to_text};
use super::public_key::PublicKey;

/// What a person may call a key.
const NAME_CHARS_MAX: usize = 64;

/// A person's key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "it is the public one of a pair")]
pub struct Key {
    /// What the authenticator knows it by, in base 64 for URLs.
    id: String,
    /// How the person calls it.
    name: String,
    /// In the form of COSE, in base 64 for URLs.
    public_key: String,
    /// The counter of its newest use; stays 0 of a key that counts none.
    counter: u32,
    /// When it was made, in RFC 3339.
    since: String,
}

/// A key that was just made, and its proof was right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewKey {
    pub(crate) id: Vec<u8>,
    pub(crate) cose: Vec<u8>,
    pub(crate) counter: u32,
}

impl NewKey {
    /// As the file gets it, under a name of the person's; none where the name is empty, has
    /// characters that are not shown, or is too long.
    pub fn named(&self, name: &str, since: String) -> Option<Key> {
        let name = name.trim();
        let is_shown = !name.is_empty() && !name.chars().any(char::is_control);
        let is_name = is_shown && name.chars().count() <= NAME_CHARS_MAX;
        is_name.then(|| Key {
            id: to_text(&self.id),
            name: name.to_owned(),
            public_key: to_text(&self.cose),
            counter: self.counter,
            since,
        })
    }
}

impl Key {
    /// What the authenticator knows it by, in base 64 for URLs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How the person calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it was made, in RFC 3339.
    pub fn since(&self) -> &str {
        &self.since
    }

    pub(crate) fn public_key(&self) -> Result<PublicKey, WrongKey> {
        let cose = from_text(&self.public_key)?;
        PublicKey::of(&Map::read(&mut cose.as_slice())?)
    }

    /// Whether a counter is that of a newer use: some keys count none.
    pub(crate) fn is_newer(&self, counter: u32) -> bool {
        counter > self.counter || (counter == 0 && self.counter == 0)
    }

    /// Puts a use down. False where it was not newer.
    pub(crate) fn take(&mut self, counter: u32) -> bool {
        let is_newer = self.is_newer(counter);
        self.counter = self.counter.max(counter);
        is_newer
    }
}
