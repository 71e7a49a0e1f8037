//! What is sent how, and where it comes from.

use core::num::NonZeroU64;

use capture::{FrameLimits, Source};

use crate::schedule::Pace;

/// What is sent how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Pace at which packets go.
    pub pace: Pace,
    /// How often; `None` is until it is stopped.
    pub loops: Option<NonZeroU64>,
    /// What becomes of frames on their way.
    pub rewrite: Rewrite,
    /// Truncated packets are filled up with zeros instead of being left out.
    pub pad: bool,
    /// What the interface takes.
    pub limits: FrameLimits,
    /// Memory for packets. An input that fits is read once; of others so much is read ahead.
    pub memory_bytes: u64,
}

/// How frames differ from the input's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rewrite {
    /// Not at all.
    Nothing,
    /// Each loop has addresses of its own.
    Addresses,
    /// The last bytes of each frame hold its number, from 0 over all loops ([`wire::stamp`]).
    Stamps {
        /// The key of the run.
        key: u64,
    },
}

/// Opens the input, once for each loop that it is read for.
pub type Open<'a> = dyn FnMut() -> Result<Box<dyn Source>, capture::Error> + Send + 'a;

/// Where packets come from.
pub struct Input<'a> {
    /// Opens it at its beginning.
    pub open: Box<Open<'a>>,
    /// Whether it can be opened more than once.
    pub is_repeatable: bool,
}

impl core::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Input").field("is_repeatable", &self.is_repeatable).finish_non_exhaustive()
    }
}
