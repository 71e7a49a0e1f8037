//! Numbers that decide faults: the same for the same seed, everywhere.

/// `SplitMix64` (Steele, Lea, Flood 2014): enough to choose faults, reproducible everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A source whose numbers depend on the seed and the subject alone, not on what was drawn
    /// for others.
    pub(crate) fn of(seed: u64, subject: u64) -> Self {
        Self(Self(seed).next() ^ subject)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `bound`, which is not 0. The bias is below 2^-40 for the bounds used here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
