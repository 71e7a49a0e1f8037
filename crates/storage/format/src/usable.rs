//! Which part of its members a ring may use.

/// The part of each member that the ring may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usable {
    /// Byte or share at which the range begins.
    pub begin: Bound,
    /// Byte or share at which the range ends.
    pub end: Bound,
}

impl Default for Usable {
    fn default() -> Self {
        Self { begin: Bound::Share(0), end: Bound::Share(WHOLE) }
    }
}

/// A place on a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Bytes from its begin.
    Bytes(u64),
    /// Ten-thousandths of its size.
    Share(u16),
}

/// All ten-thousandths.
const WHOLE: u16 = 10_000;

impl Bound {
    /// The byte that this is on a member of `size_bytes`.
    ///
    /// # Panics
    ///
    /// When the share of a size is more than 64 bits hold.
    pub fn of(self, size_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => {
                let bytes = u128::from(size_bytes) * u128::from(share) / u128::from(WHOLE);
                u64::try_from(bytes).expect("a share of a size, or 6.5 times as much")
            }
        }
    }
}
