//! Encryption in histories: who may read, and keys that follow from a seed.

use std::sync::Arc;

use encryption::{Identities, Keyring};
use writer::RandomKey;

/// A pair of keys, of who may read what is encrypted.
const RECIPIENT: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
const SECRET: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";

/// Whether packets are encrypted in a ring that was to have so many slots. Nothing is drawn for it:
/// histories of before go on as they did.
pub(crate) fn encrypts(slots: u64) -> bool {
    slots % 4 == 1
}

/// Whom a volume is made for.
pub(crate) fn recipients(is_encrypted: bool) -> Vec<String> {
    if is_encrypted { vec![RECIPIENT.to_owned()] } else { Vec::new() }
}

/// The keys of who may read.
pub(crate) fn keyring(volume_id: [u8; 16]) -> Arc<Keyring> {
    let identities = Identities::parse(SECRET.as_bytes(), &|| None).expect("it is a key");
    Arc::new(Keyring::new(volume_id, Some(identities)))
}

/// The keys that a writer makes.
pub(crate) fn random_key(seed: u64) -> RandomKey {
    let mut chance = units::Random::new(seed);
    Box::new(move || {
        let mut key = [0; 32];
        chance.fill(&mut key);
        Ok(key)
    })
}
