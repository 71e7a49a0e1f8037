//! Numbers of the members of a volume.

use core::num::ParseIntError;
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of a member of a volume, from 0: its seat among those that its superblocks list, and
/// behind these its place among the spares. Which column of a stripe lies on it turns with the
/// sequence. In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct MemberId(pub u8);

impl MemberId {
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Its place in a list of all members.
    pub fn place(self) -> usize {
        usize::from(self.0)
    }

    /// Its bit where a superblock says which members something is true of.
    pub fn bit(self) -> u32 {
        1 << self.0
    }

    /// All that there may be, ascending: to number what a list has.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (0..=u8::MAX).map(Self)
    }

    /// The first ones, so many.
    pub fn first(count: u8) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        (0..count).map(Self)
    }
}

shown_as_number!(MemberId);

impl FromStr for MemberId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}
