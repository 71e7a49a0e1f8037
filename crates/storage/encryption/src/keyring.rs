//! The data keys of one volume that a process may use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::file::{key_id_of, open_file, seal_file};
use crate::identity::Identities;
use crate::key::DataKey;

/// Wrappings of one key that are kept: a key may lie there for different recipients. A number that
/// was given twice, because a crash took the first key, has two keys; the one learnt last counts.
const WRAPPED_MAX: usize = 4;

/// A key of the ring.
#[derive(Debug)]
struct Entry {
    /// As it was learnt, the newest first.
    wrapped: Vec<Vec<u8>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not tried, or another one was learnt since.
    Untried,
    Open(Arc<DataKey>),
    /// No identity opens it.
    Closed,
    /// This process made it.
    Made(Arc<DataKey>),
}

/// Data keys by number: those that identities unwrap, each when it is first asked for, and those of
/// a writer that made them.
#[derive(Debug)]
pub struct Keyring {
    volume_id: [u8; 16],
    identities: Option<Identities>,
    keys: Mutex<BTreeMap<u64, Entry>>,
}

impl Keyring {
    /// Of a volume, for who has these identities; without any only what [`Self::hold`] gives.
    pub fn new(volume_id: [u8; 16], identities: Option<Identities>) -> Self {
        Self { volume_id, identities, keys: Mutex::default() }
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Entry>> {
        // A map is whole whenever the lock is free: no operation here can panic half-way.
        stage::lock(&self.keys)
    }

    /// Takes a wrapped key that lies on the disk; it may lie there several times, wrapped for
    /// different recipients.
    pub fn learn(&self, key_id: u64, wrapped: &[u8]) {
        if self.identities.is_none() {
            return;
        }
        let mut keys = self.keys();
        let new = || Entry { wrapped: Vec::new(), state: State::Untried };
        let Entry { wrapped: known, state } = keys.entry(key_id).or_insert_with(new);
        if matches!(state, State::Made(_)) || known.iter().any(|known| known == wrapped) {
            return;
        }
        known.insert(0, wrapped.to_vec());
        known.truncate(WRAPPED_MAX);
        *state = State::Untried;
    }

    /// Takes a key that this process made. Who has no identity forgets all before `oldest`.
    pub fn hold(&self, key_id: u64, key: DataKey, oldest: u64) {
        let mut keys = self.keys();
        if self.identities.is_none() {
            *keys = keys.split_off(&oldest);
        }
        let state = State::Made(Arc::new(key));
        keys.insert(key_id, Entry { wrapped: Vec::new(), state });
    }

    /// The key of this number, if it can be opened.
    pub fn key(&self, key_id: u64) -> Option<Arc<DataKey>> {
        let mut keys = self.keys();
        let Entry { wrapped, state } = keys.get_mut(&key_id)?;
        if let (State::Untried, Some(identities)) = (&*state, &self.identities) {
            let mut each = wrapped.iter();
            let key = each.find_map(|it| identities.unwrap(it, self.volume_id, key_id));
            *state = key.map_or(State::Closed, |key| State::Open(Arc::new(key)));
        }
        match state {
            State::Open(key) | State::Made(key) => Some(Arc::clone(key)),
            State::Untried | State::Closed => None,
        }
    }

    /// The newest key that can be opened, and its number.
    pub fn newest(&self) -> Option<(u64, Arc<DataKey>)> {
        let ids: Vec<u64> = self.keys().keys().rev().copied().collect();
        ids.into_iter().find_map(|key_id| Some((key_id, self.key(key_id)?)))
    }

    /// Seals a file with the newest key; `None` while there is none.
    pub fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let (key_id, key) = self.newest()?;
        Some(seal_file(&key, key_id, plain))
    }

    /// Opens a file that was sealed with any key of the ring; `None` where that does not succeed.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        open_file(self.key(key_id_of(sealed)?)?.as_ref(), sealed).ok()
    }

    /// Whether it can unwrap keys, and so has to learn them.
    pub fn has_identities(&self) -> bool {
        self.identities.is_some()
    }

    /// Whether it knows of any key at all.
    pub fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret as _;

    use super::*;
    use crate::wrap::Recipients;

    /// A crash took a key that a reader had learnt, and the next recorder gave its number again.
    #[test]
    fn a_number_that_was_given_twice_is_that_of_the_newest_key() {
        let identity = age::x25519::Identity::generate();
        let secret = identity.to_string().expose_secret().to_owned();
        let recipients = Recipients::parse(&[identity.to_public().to_string()]).unwrap();
        let wrap = |byte| recipients.wrap(&DataKey::new([byte; 32]), [7; 16], 4).unwrap();
        let identities = || Identities::parse(secret.as_bytes(), &|| None).unwrap();
        for is_opened in [false, true] {
            let ring = Keyring::new([7; 16], Some(identities()));
            let (taken, there) = (wrap(1), wrap(2));
            ring.learn(4, &taken);
            assert!(!is_opened || ring.key(4).unwrap().bytes() == &[1; 32]);
            for _ in 0..2 {
                ring.learn(4, &there);
                assert_eq!(ring.key(4).unwrap().bytes(), &[2; 32]);
            }
            // What nobody here opens takes nothing away.
            ring.learn(4, b"wrapped for others");
            assert_eq!(ring.key(4).unwrap().bytes(), &[2; 32]);
        }
    }

    #[test]
    fn a_writer_forgets_what_it_made_before() {
        let ring = Keyring::new([0; 16], None);
        assert!(ring.is_empty());
        for key_id in 1..=4 {
            ring.learn(key_id, b"wrapped");
            ring.hold(key_id, DataKey::new([9; 32]), key_id.saturating_sub(1));
        }
        let held = (1..=4).filter(|key_id| ring.key(*key_id).is_some());
        assert_eq!(held.collect::<Vec<_>>(), [3, 4]);
        assert_eq!(ring.newest().map(|(key_id, _)| key_id), Some(4));
    }
}
