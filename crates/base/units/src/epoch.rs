//! Numbers of the openings of a volume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::shown_as_number;

/// The number of one opening of a volume for writing; they only rise, and 0 stands for none. In
/// JSON it is that number.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Epoch(pub u32);

impl Epoch {
    /// No opening: nothing was ever written.
    pub const NONE: Self = Self(0);
    /// Behind all that are used.
    pub const MAX: Self = Self(u32::MAX);

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The next opening.
    ///
    /// # Panics
    /// Behind the last one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

shown_as_number!(Epoch);
