//! Numbers of the interfaces of a recording.

use core::num::ParseIntError;
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of an interface among all that a recorder had since it opened the volume, from 0. It
/// is not the number by which the kernel knows it, and not its place in a source, a piece or a
/// file. In JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct InterfaceId(pub u32);

impl InterfaceId {
    /// The one at this place of a list of all.
    ///
    /// # Panics
    /// Behind 4 294 967 295, which no list in memory reaches.
    pub fn at(place: usize) -> Self {
        Self(u32::try_from(place).expect("fewer interfaces than 32 bits count"))
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Its place in a list of all.
    pub fn place(self) -> usize {
        usize::try_from(self.0).expect("an address has at least 32 bits")
    }
}

shown_as_number!(InterfaceId);

impl FromStr for InterfaceId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}
