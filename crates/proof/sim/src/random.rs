//! A seeded random sequence: one seed is one history.

use units::mix;
use units::number::to_u64;

/// The only source of chance in a history.
#[derive(Clone, Debug)]
pub(crate) struct Random(units::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring sequences.
        Self(units::Random::new(mix(seed ^ 0x5eed)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
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
