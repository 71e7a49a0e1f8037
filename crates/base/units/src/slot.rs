//! Numbers of the slots of a ring.

use core::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of a slot of a ring, from 0: where on the members the stripes of many sequences lie,
/// one after the other. In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct SlotNumber(pub u64);

impl SlotNumber {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The slot so many before it, if there is one.
    pub fn checked_sub(self, count: u64) -> Option<Self> {
        self.0.checked_sub(count).map(Self)
    }
}

impl Add<u64> for SlotNumber {
    type Output = Self;

    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

/// How many slots it is behind the other one.
impl Sub for SlotNumber {
    type Output = u64;

    fn sub(self, before: Self) -> u64 {
        self.0 - before.0
    }
}

shown_as_number!(SlotNumber);
