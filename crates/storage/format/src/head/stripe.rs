//! The id of a stripe, by which stripes are ordered.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use units::Sequence;

use crate::field::{get_u16, get_u64, put};

/// Highest sequence: a ring that writes a million stripes a second comes there in 36 000 years. A
/// higher one is damage, or made to overflow what is computed with it.
pub const SEQUENCE_MAX: Sequence = Sequence(1 << 60);

/// A stripe: which slot's life, and which of the stripes in that slot. Orders as written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, JsonSchema)]
#[schemars(with = "String", inline, extend("pattern" = "^[0-9]+\\.[0-9]+$"))]
pub struct StripeId {
    /// Never reused in a volume's life; 0 stands before the first stripe.
    pub sequence: Sequence,
    /// From 0 within the slot.
    pub sub: u16,
}

impl StripeId {
    /// The first place behind it; the last place of all has none, and stays.
    #[must_use]
    pub fn after(self) -> Self {
        match (self.sub.checked_add(1), self.sequence.checked_add(1)) {
            (Some(sub), _) => Self { sub, ..self },
            (None, Some(sequence)) => Self { sequence, sub: 0 },
            (None, None) => self,
        }
    }

    /// The place in front of it; every stripe there is not behind it.
    #[must_use]
    pub fn before(self) -> Self {
        match self.sub.checked_sub(1) {
            Some(sub) => Self { sub, ..self },
            None => Self { sequence: self.sequence.saturating_sub(1), sub: u16::MAX },
        }
    }

    pub(super) fn encode(self, page: &mut [u8], offset: usize) {
        put(page, offset, &self.sequence.get().to_le_bytes());
        put(page, offset + 8, &self.sub.to_le_bytes());
    }

    pub(super) fn decode(page: &[u8], offset: usize) -> Self {
        Self { sequence: Sequence(get_u64(page, offset)), sub: get_u16(page, offset + 8) }
    }
}

impl core::fmt::Display for StripeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.sequence, self.sub)
    }
}

/// As its text.
impl Serialize for StripeId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
