//! SipHash-1-3 of a session's key: what resists senders who choose addresses and ports so that
//! their sessions collide, as long as the table's key is secret. Written for inputs of whole words
//! and four bytes, so that nothing is buffered and no loop is left.

/// A secret, and what it makes of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SipHasher {
    key: [u64; 2],
}

impl SipHasher {
    pub(crate) fn new(seed: u64) -> Self {
        // Two words that reveal nothing of each other, by a hash that reveals nothing of the seed.
        let from = Self { key: [seed, 0] };
        Self { key: [from.hash(&[0; 5], 0), from.hash(&[0; 5], 1)] }
    }

    /// The next secret, which the present one does not reveal.
    pub(crate) fn next(self) -> Self {
        Self { key: [self.hash(&[1; 5], 0), self.hash(&[1; 5], 1)] }
    }

    /// The hash of some words and four bytes, as they lie in memory in little-endian order.
    #[inline]
    pub(crate) fn hash<const WORDS: usize>(&self, words: &[u64; WORDS], tail: u32) -> u64 {
        // The last word has the length, too.
        let len = const { len_byte(WORDS) };
        let [key0, key1] = self.key;
        // "somepseudorandomlygeneratedbytes", from the reference implementation.
        let mut state = State([
            key0 ^ 0x736f_6d65_7073_6575,
            key1 ^ 0x646f_7261_6e64_6f6d,
            key0 ^ 0x6c79_6765_6e65_7261,
            key1 ^ 0x7465_6462_7974_6573,
        ]);
        for &word in words {
            state.take(word);
        }
        state.take(len << 56 | u64::from(tail));
        state.finish()
    }
}

/// The length of the input in bytes, which has to fit one.
const fn len_byte(words: usize) -> u64 {
    let mut len = 4;
    let mut word = 0;
    while word < words {
        (len, word) = (len + 8, word + 1);
    }
    assert!(len < 256, "the length is one byte");
    len
}

struct State([u64; 4]);

impl State {
    #[inline]
    fn take(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }

    #[inline]
    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        let [a, b, c, d] = self.0;
        a ^ b ^ c ^ d
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the reference implementation: key and input are bytes that count up from zero.
    #[test]
    fn the_published_vectors_of_these_lengths_hold() {
        let byte = |at: usize| u64::from(u8::try_from(at).unwrap());
        let word = |at: usize| (0..8).map(|place| byte(at + place) << (8 * place)).sum::<u64>();
        let tail = |at: usize| u32::try_from(word(at) & u64::from(u32::MAX)).unwrap();
        let hasher = SipHasher { key: [word(0), word(8)] };
        let short = hasher.hash(&[0, 8].map(word), tail(16));
        assert_eq!(short.to_le_bytes(), [0x40, 0xe0, 0xcc, 0xa6, 0x46, 0x2f, 0xdc, 0xc0]);
        let long = hasher.hash(&[0, 8, 16, 24, 32].map(word), tail(40));
        assert_eq!(long.to_le_bytes(), [0x6b, 0x87, 0xf8, 0xfa, 0xed, 0x1c, 0xca, 0xc2]);
    }

    #[test]
    fn every_seed_and_every_step_has_a_key_of_its_own() {
        let (first, second) = (SipHasher::new(1), SipHasher::new(2));
        let keys = [first.key, second.key, first.next().key, first.next().next().key];
        let mut distinct = keys.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), keys.len());
    }
}
