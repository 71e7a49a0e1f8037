//! A seeded random sequence (`SplitMix64`): one seed is one history.

use units::number::to_u64;

/// The only source of chance in a history.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring sequences.
        Self(mix(seed ^ 0x5eed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        let len = to_u64(len);
        usize::try_from(self.below(len)).expect("below a length")
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let index = self.index(from.len());
        from.get(index).expect("below the length").clone()
    }
}

/// A number that looks like chance and depends on `value` alone.
pub(crate) fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
