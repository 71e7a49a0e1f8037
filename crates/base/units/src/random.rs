//! Chance as an argument: crates that need some take a source that the caller has seeded.

/// The golden ratio: what `SplitMix64` adds for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of `SplitMix64`: a changed bit of the value changes half of the result. 0 stays 0.
pub fn mix(value: u64) -> u64 {
    let mixed = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `SplitMix64` (Steele, Lea, Flood 2014): every seed gives a sequence of full period, the same
/// everywhere. Good enough to choose places, faults and flows; no secret.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A source whose numbers depend on the seed and the subject alone, not on what was drawn
    /// for others.
    pub fn of(seed: u64, subject: u64) -> Self {
        Self(Self(seed).next() ^ subject)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "a sequence without end is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`. Its bias, at most `bound` / 2^64, is of no account here.
    ///
    /// # Panics
    /// `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Content that no disk compresses.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            part.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' code for the seed 1234567.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.next()), expected);
    }

    #[test]
    fn bytes_are_the_numbers_in_little_endian() {
        let mut bytes = [0; 11];
        Random::new(5).fill(&mut bytes);
        let mut random = Random::new(5);
        let words = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
        assert_eq!(bytes, words[..11]);
    }
}
