//! Results that are remembered by what they were made of: few clients greet in different ways, and
//! a fingerprint costs more than the rest of a hello.

use core::hash::{Hash, Hasher as _};
use std::hash::DefaultHasher;

/// Results that are remembered.
const SLOTS: usize = 128;

/// Results of one function, the newest for each place. Keys are compared
/// whole, so who makes hashes collide gains nothing but that each is computed.
#[derive(Debug)]
pub(crate) struct Memo<K, V> {
    slots: [Option<(K, V)>; SLOTS],
}

impl<K: Hash + Eq + Clone, V: Clone> Memo<K, V> {
    /// The result for `key`; made by `make` where it is not remembered.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce(&K) -> V) -> V {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let place = usize::try_from(hasher.finish()).expect("64 bits") % SLOTS;
        let slot = self.slots.get_mut(place).expect("below the number of places");
        match slot {
            Some((known, value)) if known == key => value.clone(),
            _ => slot.insert((key.clone(), make(key))).1.clone(),
        }
    }
}

impl<K, V> Memo<K, V> {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { None }; SLOTS] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_made_once_while_nothing_takes_its_place() {
        let mut memo = Memo::new();
        let mut made = 0;
        for _ in 0..3 {
            for key in 0..3_u32 {
                let value = memo.get(&key, |key| {
                    made += 1;
                    key * 10
                });
                assert_eq!(value, key * 10);
            }
        }
        // Two of three may share a place.
        assert!((3..=9).contains(&made), "{made}");
    }

    #[test]
    fn the_result_is_right_whatever_shares_its_place() {
        let mut memo = Memo::new();
        for key in (0..10_000_u64).chain(0..10_000) {
            assert_eq!(memo.get(&key, |key| key * key), key * key);
        }
    }
}
